"""The functions that a C++ text defines with C linkage."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.inline.signature import Parameter, prototypes

SCALARS = {
    "bool": ctypes.c_bool,
    "signed char": ctypes.c_byte,
    "unsigned char": ctypes.c_ubyte,
    "int8_t": ctypes.c_int8,
    "uint8_t": ctypes.c_uint8,
    "std::int16_t": ctypes.c_int16,
    "uint16_t": ctypes.c_uint16,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "::std::uint64_t": ctypes.c_uint64,
    "short": ctypes.c_short,
    "unsigned short int": ctypes.c_ushort,
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "long": ctypes.c_long,
    "long unsigned int": ctypes.c_ulong,
    "long long": ctypes.c_longlong,
    "unsigned long long": ctypes.c_ulonglong,
    "size_t": ctypes.c_size_t,
    "ptrdiff_t": ctypes.c_ssize_t,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
GAPS = st.sampled_from([" ", "\n", "  \t", " /* , ) { */ ", " // ( \n", " \\\n "])


@st.composite
def parameters(draw: st.DrawFn) -> tuple[str, Parameter]:
    """One parameter as C++ text, and what should be read from it."""
    gap = draw(GAPS)
    scalar = draw(st.sampled_from(sorted(SCALARS)))
    name = draw(st.sampled_from(["", "x", "rows_2", "in", "lambda"]))
    const = draw(st.sampled_from(["", "const "]))
    spelled = f"{const}{scalar.replace(' ', gap)}"
    shape = draw(st.sampled_from(["value", "pointer", "restricted", "array", "pointers"]))
    if shape == "value":
        return f"{spelled}{gap}{name}", Parameter(name, SCALARS[scalar], is_pointer=False)
    declarator = {
        "pointer": f"*{gap}{name}",
        "restricted": f"{gap}* __restrict__{gap}{name}",
        "array": f"{gap}{name}[4]",
        "pointers": f"* const *{name}",
    }[shape]
    return spelled + declarator, Parameter(name, ctypes.c_void_p, is_pointer=True)


@given(st.lists(parameters(), max_size=6), st.sampled_from(["void", *sorted(SCALARS)]), GAPS)
def test_every_spelling_of_parameters_is_read(
    listed: list[tuple[str, Parameter]], returned: str, gap: str
) -> None:
    texts = f",{gap}".join(text for text, _ in listed)
    source = f'extern "C"{gap}{returned}{gap}kernel{gap}({texts}){gap}{{ if (1) {{ }} }}'
    prototype = prototypes(source)["kernel"]
    assert prototype.parameters == tuple(expected for _, expected in listed)
    assert prototype.returns is SCALARS.get(returned)
    assert prototype.unsupported == ()


@given(st.text(alphabet='extern "C"{}()[]<>*&,;=#/\\\n\'R fxint', max_size=200))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    for name, prototype in prototypes(text).items():
        assert prototype.name == name


def test_blocks_and_single_functions_are_found_and_nothing_else() -> None:
    source = r"""
    // extern "C" void commented(int x) {}
    /* extern "C" void also_commented(int x) {} */
    const char* text = "extern \"C\" void quoted() {";
    const char* raw = R"tag(extern "C" void raw_quoted() {)tag";
    char brace = '{';
    struct alignas(16) Vector { float x[4]; Vector operator+(const Vector& o) const { return o; } };
    inline Vector operator-(Vector a, Vector b) { return a; }
    Vector::Vector() : x{1}, y(2) { }
    template <typename T> T larger(T a, T b) { return a < b ? b : a; }
    template <> float larger<float>(float a, float b) { return a; }
    static const int table[] = {1, 2};
    auto function = [](int x) { return x; };
    void plain(int x) { }
    namespace { extern "C" void unnamed(int x) {} }
    namespace outer::inner { extern "C" void named(int x) {} }
    extern "C" int variable;
    extern "C" void (*hook)(int);
    extern "C" {
        static void internal(int x) {}
        void only_declared(int x);
        void first(int x) {}
        void second(int x) { for (;;) { } }
    }
    extern "C" static void internal_too(int x) {}
    extern "C++" { void mangled(int x) {} }
    extern "C" void third(int x) noexcept { }
    """
    assert list(prototypes(source)) == ["named", "first", "second", "third"]


def test_a_definition_after_its_prototype_counts_and_names_the_parameters() -> None:
    source = 'extern "C" void f(float*, int);\nvoid f(float* out, int n) { }'
    assert [p.name for p in prototypes(source)["f"].parameters] == ["out", "n"]


def test_attributes_and_trailing_return_types_are_understood() -> None:
    source = """
    extern "C" __attribute__((visibility("default"), noinline))
    auto f([[maybe_unused]] float* x __attribute__((aligned(16))), alignas(8) int n) noexcept
        -> double
    { return 0; }
    """
    prototype = prototypes(source)["f"]
    assert prototype.text == "double f(float* x, int n)"
    assert prototype.returns is ctypes.c_double


def test_names_for_types_are_followed() -> None:
    source = """
    using index = std::int64_t;
    typedef const float* floats;
    typedef index count;
    extern "C" index f(floats x, count n) { return n; }
    """
    prototype = prototypes(source)["f"]
    assert prototype.returns is ctypes.c_int64
    assert [p.is_pointer for p in prototype.parameters] == [True, False]
    assert prototype.parameters[1].ctype is ctypes.c_int64


def test_functions_that_macros_write_are_found() -> None:
    source = r"""
    #define EXPORT extern "C" __attribute__((visibility("default")))
    #define UNARY(NAME, T, ...)                                  \
        EXPORT void NAME##_kernel(const T* x, T* y, int64_t n) { \
            for (int64_t i = 0; i < n; ++i) { __VA_ARGS__; }     \
        }
    UNARY(relu, float, y[i] = x[i] > 0 ? x[i] : 0)
    UNARY(square, double, y[i] = x[i] * x[i])
    #undef EXPORT
    #define SELF SELF
    """
    found = prototypes(source)
    assert found["relu_kernel"].text == "void relu_kernel(const float* x, float* y, int64_t n)"
    assert (
        found["square_kernel"].text == "void square_kernel(const double* x, double* y, int64_t n)"
    )


def test_nested_macros_cannot_exhaust_memory() -> None:
    doubling = "".join(f"#define M{i} M{i - 1} M{i - 1}\n" for i in range(1, 60))
    source = 'extern "C" void f(int x) {}\n#define M0 int a;\n' + doubling + "M59\n"
    assert list(prototypes(source)) == ["f"]


@pytest.mark.parametrize(
    ("condition", "parameters"), [("#if 0", 1), ("#ifdef __AVX2__", 2), ("#if N > 4", 2)]
)
def test_one_branch_of_conditional_code_is_read(condition: str, parameters: int) -> None:
    source = f"""
    #ifdef __cplusplus
    extern "C" {{
    #endif
    {condition}
    void f(int a, int b) {{ if (a) {{
    #else
    void f(int a) {{ if (!a) {{
    #endif
    }} }}
    void g(int a) {{ }}
    #ifdef __cplusplus
    }}
    #endif
    """
    found = prototypes(source)
    assert list(found) == ["f", "g"]
    assert len(found["f"].parameters) == parameters


@pytest.mark.parametrize(
    "parameter",
    [
        "std::vector<float> v",
        "struct Shape s",
        "float& x",
        "int (&x)[3]",
        "...",
        "std::array<int*, 2>",
    ],
)
def test_what_cannot_be_passed_by_value_is_noted(parameter: str) -> None:
    prototype = prototypes(f'extern "C" void f(int n, {parameter}) {{ }}')["f"]
    assert prototype.unsupported == (f"parameter `{parameter}`",)
    assert prototype.parameters[1].ctype is None


@pytest.mark.parametrize("returned", ["const char*", "std::string", "float&"])
def test_what_cannot_be_returned_is_noted(returned: str) -> None:
    prototype = prototypes(f'extern "C" {returned} f() {{ }}')["f"]
    assert prototype.unsupported == (f"return type `{returned}`",)


def test_function_pointers_and_void_lists_are_understood() -> None:
    found = prototypes('extern "C" void f(void (*callback)(int, int)) {} extern "C" int g(void) {}')
    assert found["f"].parameters == (Parameter("callback", ctypes.c_void_p, is_pointer=True),)
    assert found["g"].parameters == ()


def test_default_arguments_are_left_out() -> None:
    prototype = prototypes('extern "C" void f(int n = (1, 2), float x = 3.0f) {}')["f"]
    assert [p.name for p in prototype.parameters] == ["n", "x"]


@pytest.mark.parametrize(
    ("written", "points_to", "elements"),
    [
        ("const float* x", "float", 0),
        ("float *__restrict__ x", "float", 0),
        ("float const* const", "float", 0),
        ("const std::int64_t* x", "std::int64_t", 0),
        ("long unsigned int* x", "unsigned long", 0),
        ("unsigned x[8]", "unsigned", 8),
        ("float x[]", "float", 0),
        ("const double x[16]", "double", 16),
        ("const double x[N]", "double", 0),
        ("const __half* x", "__half", 0),
        ("Pointer x", "float", 0),
        ("const Real* x", "double", 0),
        ("void* x", "void", 0),
        ("float** x", "", 0),
        ("float x[2][3]", "", 0),
        ("void (*x)(int)", "", 0),
        ("const std::vector<float>* x", "", 0),
    ],
)
def test_what_a_pointer_points_to(written: str, points_to: str, elements: int) -> None:
    aliases = "using Pointer = const float*; typedef double Real;\n"
    [parameter] = prototypes(f'{aliases}extern "C" void f({written}) {{}}')["f"].parameters
    assert (parameter.is_pointer, parameter.points_to) == (True, points_to)
    assert parameter.elements == elements
