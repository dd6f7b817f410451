// Sizes and layouts of what a convolution works on.
template <int64_t D_, int64_t H_, int64_t W_>
struct Box {
    static constexpr int64_t D = D_, H = H_, W = W_;
};

// How far elements lie apart from image to image, channel to channel, and within an image.
template <int64_t IMAGE_, int64_t CHANNEL_, int64_t D_, int64_t H_, int64_t W_>
struct Strides {
    static constexpr int64_t IMAGE = IMAGE_, CHANNEL = CHANNEL_, D = D_, H = H_, W = W_;
};
