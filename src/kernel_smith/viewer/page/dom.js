// Elements in one call: h("a", {href: "#/"}, "Runs"). Text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child));
  return node;
}

// A drawing that is made anew whenever its place has another width.
export function fitted(draw, className = "") {
  const box = h("div", { class: `fitted ${className}` });
  let width = 0;
  const observer = new ResizeObserver(() => {
    const now = Math.floor(box.clientWidth);
    if (now && now !== width) replace(box, draw((width = now)));
    if (!box.isConnected) observer.disconnect();
  });
  observer.observe(box);
  return box;
}

// The one tooltip: shown beside a pointer, and beside whatever has the focus.
const tip = () => document.getElementById("tip");

export function showTip(lines, x, y) {
  const box = tip();
  replace(box, lines.map((line, index) => h("div", { class: index ? "" : "strong" }, line)));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = Math.min(x + 14, window.innerWidth - width - 8);
  const top = y + 18 + height > window.innerHeight ? y - height - 12 : y + 18;
  box.style.left = `${Math.max(8, left)}px`;
  box.style.top = `${Math.max(8, top)}px`;
}

export function hideTip() {
  tip().hidden = true;
}

// Give a node a tooltip: `lines()` is asked when it is shown.
export function tipped(node, lines) {
  node.addEventListener("pointermove", (event) => showTip(lines(), event.clientX, event.clientY));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", () => {
    const box = node.getBoundingClientRect();
    showTip(lines(), box.right, box.top);
  });
  node.addEventListener("blur", hideTip);
  return node;
}

export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export function copyButton(text, what) {
  const button = h("button", { type: "button", class: "small" }, "Copy");
  button.setAttribute("aria-label", `Copy ${what}`);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}
