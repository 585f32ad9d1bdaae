(allowed => {
  const out = new Set();
  const name = e => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + (e.getAttribute('class') ? '.' + e.getAttribute('class').trim().split(/\s+/).join('.') : '');
  const unseen = e => { // for screen readers alone, or not drawn
    for (; e; e = e.parentElement) {
      const s = getComputedStyle(e);
      if (s.clipPath !== 'none' || s.visibility === 'hidden' || s.position === 'absolute' && e.getBoundingClientRect().right < 0) return true;
    }
    return false;
  };
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > innerWidth) out.add('the page is ' + (document.documentElement.scrollWidth - innerWidth) + ' pixels wider than the window');
  for (const e of document.body.querySelectorAll('*')) {
    if (!e.checkVisibility() || !e.getClientRects().length || e.closest('title, desc, option') || unseen(e)) continue;
    if (allowed && e.closest(allowed)) continue;
    const s = getComputedStyle(e), r = e.getBoundingClientRect();
    const what = name(e) + ': ' + (e.textContent.trim().slice(0, 60) || e.value || '');
    if (r.right > wide + 1 || r.left < -1) out.add('outside the window: ' + what);
    if (e.closest('svg') && e.tagName !== 'svg') continue;
    if (e.tagName !== 'svg' && s.overflowX !== 'visible' && s.display !== 'inline' && e.scrollWidth > e.clientWidth + 1 && !['SELECT', 'INPUT'].includes(e.tagName)) out.add('cut or scrolls sideways: ' + what);
    if (['hidden', 'clip'].includes(s.overflowY) && s.display !== 'inline' && e.tagName !== 'svg' && e.scrollHeight > e.clientHeight + 1) out.add('cut below: ' + what);
  }
  for (const svg of document.querySelectorAll('svg')) {
    const b = svg.getBoundingClientRect();
    if (!svg.checkVisibility()) continue;
    for (const e of svg.querySelectorAll('text, rect, circle')) {
      const r = e.getBoundingClientRect();
      if (r.width && (r.left < b.left - 1 || r.right > b.right + 1 || r.top < b.top - 1 || r.bottom > b.bottom + 1)) out.add('cut off a drawing: ' + e.textContent);
    }
  }
  return [...out].slice(0, 30);
})
