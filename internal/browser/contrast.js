(() => {
  const parse = c => {
    const m = c.match(/rgba?\(([^)]+)\)/);
    if (!m) return null;
    const v = m[1].split(/[ ,\/]+/).map(Number);
    return { r: v[0], g: v[1], b: v[2], a: v.length > 3 ? v[3] : 1 };
  };
  const lum = c => {
    const f = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(c.r) + 0.7152 * f(c.g) + 0.0722 * f(c.b);
  };
  const ratio = (a, b) => { const x = lum(a), y = lum(b); return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
  const behind = el => {
    for (let e = el; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c && c.a > 0.99) return c;
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? { r: 0, g: 0, b: 0 } : { r: 255, g: 255, b: 255 };
  };
  const under = t => {
    const svg = t.closest('svg'), b = t.getBoundingClientRect();
    const x = (b.left + b.right) / 2, y = (b.top + b.bottom) / 2;
    let c = behind(svg);
    for (const r of svg.querySelectorAll('rect, path')) {
      if (t.compareDocumentPosition(r) & Node.DOCUMENT_POSITION_FOLLOWING) continue;
      const q = r.getBoundingClientRect(), s = getComputedStyle(r);
      if (r.tagName === 'rect' && q.left <= x && x <= q.right && q.top <= y && y <= q.bottom && s.fill !== 'none' && +s.opacity > 0.99) c = parse(s.fill) || c;
    }
    return c;
  };
  const out = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const n = walk.currentNode, el = n.parentElement;
    if (!n.data.trim() || !el || ['TITLE', 'DESC', 'SCRIPT', 'STYLE', 'title', 'desc', 'OPTION'].includes(el.tagName)) continue;
    const s = getComputedStyle(el);
    if (s.visibility === 'hidden' || s.display === 'none' || !el.getClientRects().length) continue;
    const text = el.closest('svg') ? el.closest('text') : null;
    const ink = parse(text ? getComputedStyle(text).fill : s.color);
    if (!ink) { out.add('no colour: ' + n.data.trim().slice(0, 40)); continue; }
    const size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.66 && +s.fontWeight >= 700;
    const got = ratio(ink, text ? under(text) : behind(el));
    if (got < (large ? 3 : 4.5)) out.add(got.toFixed(2) + ' for ' + (el.className.baseVal ?? el.className) + ': ' + n.data.trim().slice(0, 40));
  }
  return [...out].slice(0, 30);
})()
