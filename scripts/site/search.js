'use strict';
// A section is found when it holds every word of the query. All text is set as
// text: neither the query nor a page can put markup here.
const query = new URLSearchParams(location.search).get('q') || '';
const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
const input = document.querySelector('input[type=search]');
input.value = query;
input.focus();

const count = (text, word) => text.split(word).length - 1;
const found = [];
for (const s of JSON.parse(document.getElementById('sections').textContent)) {
  const page = s.Page.toLowerCase(), title = s.Title.toLowerCase(), text = (s.Text || '').toLowerCase();
  let score = 0;
  const all = wanted.every(w => {
    const n = 20 * count(title, w) + 5 * count(page, w) + Math.min(count(text, w), 10);
    score += n;
    return n > 0;
  });
  if (all && wanted.length) found.push({ s, score });
}
found.sort((a, b) => b.score - a.score);

// around is the text near the first of the words, with all of them marked.
function around(text) {
  const low = text.toLowerCase();
  const first = Math.min(...wanted.map(w => low.indexOf(w)).filter(i => i >= 0), low.length);
  const from = first < 80 || first === low.length ? 0 : low.indexOf(' ', first - 80) + 1;
  const out = document.createElement('p');
  let rest = text.slice(from, from + 260);
  while (rest) {
    const hits = wanted.map(w => [rest.toLowerCase().indexOf(w), w.length]).filter(h => h[0] >= 0);
    if (!hits.length) break;
    const [at, length] = hits.sort((a, b) => a[0] - b[0] || b[1] - a[1])[0];
    const mark = document.createElement('mark');
    mark.textContent = rest.slice(at, at + length);
    out.append(rest.slice(0, at), mark);
    rest = rest.slice(at + length);
  }
  out.append(rest);
  return out;
}

const list = document.getElementById('found');
for (const { s } of found.slice(0, 40)) {
  const item = document.createElement('li'), link = document.createElement('a');
  link.href = s.Link;
  link.textContent = s.Title === s.Page ? s.Page : s.Page + ': ' + s.Title;
  item.append(link, around(s.Text || ''));
  list.append(item);
}
document.getElementById('said').textContent = !wanted.length ? 'Type a word and press Enter.'
  : !found.length ? 'No page holds all of these words: ' + query
  : found.length > 40 ? 'The best 40 of ' + found.length + ' places for: ' + query
  : found.length + (found.length === 1 ? ' place for: ' : ' places for: ') + query;
