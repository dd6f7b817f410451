// Source as spans: Python, and the C++ or CUDA text in its long strings.

import { h } from "ks/dom.js";

const words = (text) => new Set(text.split(" "));
const PYTHON = words("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield match case");
const C = words("alignas auto bool break case char class const constexpr continue default delete do double else enum extern false float for if inline int int8_t int16_t int32_t int64_t long namespace new nullptr operator private public register restrict return short signed size_t sizeof static static_cast reinterpret_cast struct switch template this true typedef typename uint8_t uint16_t uint32_t uint64_t union unsigned using void volatile while __restrict__ __global__ __device__ __shared__ __host__ __syncthreads half float4 __half __nv_bfloat16 dim3");

const PYTHON_TOKEN = /(#[^\n]*)|((?:[rRbBfFuU]{0,2})(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)))|((?:[rRbBfFuU]{0,2})(?:"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(@[\w.]+)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g;
const C_TOKEN = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(^[ \t]*#(?:[^\n\\]|\\[\s\S])*)|("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|(\b(?:0x[\da-fA-F]+|\d[\w.]*)\b)|([A-Za-z_]\w*)/gm;
const IS_C = /#include|extern "C"|__global__|#pragma/;

// Lines of spans: [[class, text], ...] for each line.
export function highlightLines(source) {
  const lines = [[]];
  const emit = (kind, text) => {
    text.split("\n").forEach((part, index) => {
      if (index) lines.push([]);
      if (part) lines[lines.length - 1].push([kind, part]);
    });
  };
  python(source, emit);
  return lines;
}

function python(source, emit) {
  scan(source, PYTHON_TOKEN, emit, ([text, comment, long, string, decorator, number, word], after) => {
    if (comment) emit("comment", text);
    else if (long && IS_C.test(long)) {
      const open = long.match(/^[a-zA-Z]*("""|''')/)[0];
      const close = long.endsWith(open.slice(-3)) && long.length > open.length ? open.slice(-3) : "";
      emit("string", open);
      c(long.slice(open.length, long.length - close.length), emit);
      emit("string", close);
    } else if (long || string) emit("string", text);
    else if (decorator) emit("meta", text);
    else if (number) emit("number", text);
    else emit(PYTHON.has(word) ? "keyword" : after === "(" ? "call" : "", text);
  });
}

function c(source, emit) {
  scan(source, C_TOKEN, emit, ([text, comment, meta, string, number, word], after) => {
    if (comment) emit("comment", text);
    else if (meta) emit("meta", text);
    else if (string) emit("string", text);
    else if (number) emit("number", text);
    else emit(C.has(word) ? "keyword" : after === "(" ? "call" : "", text);
  });
}

function scan(source, pattern, emit, take) {
  let end = 0;
  for (const match of source.matchAll(pattern)) {
    if (match.index > end) emit("", source.slice(end, match.index));
    end = match.index + match[0].length;
    take(match, source[end]);
  }
  if (end < source.length) emit("", source.slice(end));
}

export const spans = (line) => line.map(([kind, text]) => (kind ? h("span", { class: `t-${kind}` }, text) : text));

export function sourceBlock(source, label) {
  const lines = highlightLines(source.replace(/\n$/, ""));
  return h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": label }, h("code", {}, lines.map((line) => h("span", { class: "line" }, spans(line), "\n"))));
}
