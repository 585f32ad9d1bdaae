// The page of memtox view. Everything that comes from a run is hostile: it is
// put into text nodes (show) and attributes that cannot run, never into markup.

const main = document.getElementById('main');
const where = document.getElementById('where');
const status = document.getElementById('status');

// h makes an element. Children are nodes or texts; a text becomes a text node.
function h(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? '' : v);
  }
  add(e, children);
  return e;
}

function add(e, children) {
  for (const c of children.flat(Infinity)) {
    if (c === undefined || c === null || c === false || c === '') continue;
    e.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
  return e;
}

// What cannot be seen, or turns the direction of what can.
const unseen = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;

// show returns nodes for a text of a run, with what cannot be seen made visible.
function show(text, multiline) {
  text = String(text);
  const out = [];
  let plain = '';
  for (const c of text) {
    if (!unseen.test(c) || (multiline && (c === '\n' || c === '\t'))) { plain += c; continue; }
    if (plain) out.push(plain);
    plain = '';
    const name = 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
    out.push(h('span', { class: 'unseen', title: name + ', a character that is not seen' }, name));
  }
  if (plain) out.push(plain);
  return out;
}

const longText = 2400, shownOfLong = 1600, longLines = 40, linesOfLong = 24;

// longShow is show, with the rest of a long text behind a button.
function longShow(text) {
  const lines = [...text.matchAll(/\n/g)];
  if (text.length <= longText && lines.length <= longLines) return show(text, true);
  let cut = Math.min(shownOfLong, text.length, lines.length > longLines ? lines[linesOfLong].index : Infinity);
  const code = text.charCodeAt(cut - 1);
  if (code >= 0xd800 && code < 0xdc00) cut--;
  const more = h('button', { type: 'button', class: 'more' }, `show ${(text.length - cut).toLocaleString()} more characters`);
  const box = h('span', null, show(text.slice(0, cut), true), more);
  more.addEventListener('click', () => more.replaceWith(...show(text.slice(cut), true).map(c => c instanceof Node ? c : document.createTextNode(c))));
  return [box];
}

let asking = null; // the request of the page that is shown

async function ask(path, signal) {
  const r = await fetch(path, { signal, credentials: 'same-origin' });
  const type = r.headers.get('Content-Type') || '';
  const body = type.startsWith('application/json') ? await r.json() : { error: await r.text() };
  if (!r.ok) throw new Error(body.error || r.statusText);
  return body;
}

const link = (path, params) => '#/' + path + (params ? '?' + new URLSearchParams(params) : '');

function route() {
  const raw = location.hash.replace(/^#\/?/, '');
  const i = raw.indexOf('?');
  return { page: i < 0 ? raw : raw.slice(0, i), params: new URLSearchParams(i < 0 ? '' : raw.slice(i + 1)) };
}

// go shows a place without adding to the history where replace is set.
function go(path, params, replace) {
  const to = link(path, params);
  if (replace) { history.replaceState(null, '', to); open(); } else location.hash = to;
}

let keys = {}; // what keys do on the page that is shown
let timer = 0;

async function open() {
  if (location.hash === '#main') { main.focus(); history.replaceState(null, '', lastPlace); return; }
  lastPlace = location.hash || '#/';
  if (asking) asking.abort();
  clearTimeout(timer);
  asking = new AbortController();
  const { page, params } = route();
  keys = {};
  try {
    if (page === 'run') await trialsPage(params, asking.signal);
    else if (page === 'trial') await trialPage(params, asking.signal);
    else await runsPage(asking.signal);
  } catch (e) {
    if (e.name === 'AbortError') return;
    main.replaceChildren(h('h1', null, 'That did not work'), h('p', { class: 'problem' }, show(e.message)), h('p', null, h('a', { href: '#/' }, 'All runs')));
    status.textContent = 'An error: ' + e.message;
  }
}
let lastPlace = '#/';

function crumbs(...items) {
  where.replaceChildren();
  for (const i of items) add(where, [' › ', i]);
}

// ---- the list of runs ----

async function runsPage(signal) {
  const { runs } = await ask('/api/runs', signal);
  if (runs.length === 1 && !route().page && !cameBack) { go('run', { run: runs[0].key }, true); return; }
  document.title = 'Runs · memtox view';
  crumbs();
  const rows = runs.map(r => h('tr', null,
    h('td', null, h('a', { href: link('run', { run: r.key }), class: 'row' }, show(r.id || r.key))),
    r.error ? h('td', { colspan: 6, class: 'problem' }, show(r.error)) : [
      h('td', null, new Date(r.started).toISOString().replace('T', ' ').slice(0, 16)),
      h('td', null, show(r.dataset)),
      h('td', null, show(r.model), r.llm ? '' : ' (not an LLM)'),
      h('td', null, show(r.agents.join(', '))),
      h('td', null, show(r.defenses.join(', '))),
      h('td', { class: 'n' }, r.planned.toLocaleString(), ' trials', r.finished ? '' : ', not finished'),
    ]));
  main.replaceChildren(h('h1', null, 'Runs'), h('div', { class: 'scroll' }, h('table', null,
    h('thead', null, h('tr', null, ['run', 'started (UTC)', 'dataset', 'model', 'agents', 'defenses', 'planned'].map(t => h('th', { scope: 'col' }, t)))),
    h('tbody', null, rows))));
  status.textContent = `${runs.length} runs`;
  rowKeys();
}
let cameBack = false;

// rowKeys lets j, k and the arrows move over the links of rows.
function rowKeys(selector = 'a.row') {
  const move = by => {
    const all = [...main.querySelectorAll(selector)];
    if (!all.length) return;
    const at = all.indexOf(document.activeElement.closest ? document.activeElement.closest(selector) : null);
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
  };
  keys.j = keys.ArrowDown = () => move(1);
  keys.k = keys.ArrowUp = () => move(-1);
}

// ---- the trials of a run ----

const columns = ['case', 'label', 'class', 'agent', 'defense', 'model', 'status', 'proposed', 'written', 'exposed', 'influenced', 'harm', 'wrong', 'done', 'detected', 'legit_stopped', 'utility'];
const flagFilters = ['written', 'influenced', 'harm', 'wrong', 'done', 'detected', 'deferred', 'legit_stopped', 'utility'];
// Columns that say something only where the run has several models, and where outcomes are states.
const ofStates = ['harm', 'wrong', 'done'];
const says = (data, c) => c === 'model' ? data.facets.model.length > 1 : !ofStates.includes(c) || data.facets.situation.some(f => f.value);
const pageSize = 100;

function yesNo(v) {
  return v === null || v === undefined ? h('span', { class: 'null', title: 'the question did not arise' }, '–') : v ? h('span', { class: 'yes' }, 'yes') : h('span', { class: 'no' }, 'no');
}

async function trialsPage(params, signal) {
  const run = params.get('run');
  const ask4 = facets => {
    const q = new URLSearchParams(params);
    q.set('n', pageSize);
    q.set('columns', columns.join(','));
    if (facets) q.set('facets', '1');
    return ask('/api/trials?' + q, signal);
  };
  const first = !document.getElementById('filters') || main.dataset.run !== run;
  let data = await ask4(true);
  if (first) {
    const title = h('h1', null, 'Trials of ', show(data.run.id));
    main.replaceChildren(title, h('p', { id: 'about' }), h('form', { id: 'filters', 'aria-label': 'Filters' }), h('div', { id: 'pager1', class: 'pager' }),
      h('div', { class: 'scroll' }, h('table', { id: 'trials' }, h('thead'), h('tbody'))), h('div', { id: 'pager2', class: 'pager' }));
    main.dataset.run = run;
  }
  document.title = data.run.id + ' · memtox view';
  crumbs(show(data.run.id));
  filters(data, params);
  draw(data, params);
  rowKeys();
  keys['/'] = () => document.getElementById('search').focus();
  keys.u = () => { cameBack = true; location.hash = '#/'; };
  const from = data.from;
  keys.n = () => from + pageSize < data.matching && turnPage(params, from + pageSize);
  keys.p = () => from > 0 && turnPage(params, Math.max(from - pageSize, 0));
  const follow = async () => {
    try {
      const now = await ask4(true);
      if (now.version !== data.version || now.finished !== data.finished) {
        data = now;
        draw(data, params);
      }
    } catch (e) {
      if (e.name === 'AbortError') return;
      status.textContent = 'Following the run: ' + e.message;
    }
    if (!data.finished && !signal.aborted) timer = setTimeout(follow, 3000);
  };
  if (!data.finished) timer = setTimeout(follow, 3000);
}

function turnPage(params, from) {
  const q = new URLSearchParams(params);
  q.set('from', from);
  go('run', q);
}

function changed(params, key, value) {
  const q = new URLSearchParams(params);
  if (value === '') q.delete(key); else q.set(key, value);
  q.delete('from');
  go('run', q, true);
}

function filters(data, params) {
  const form = document.getElementById('filters');
  const focus = document.activeElement && form.contains(document.activeElement) ? document.activeElement.id : '';
  if (form.childElementCount) { // keep what is being typed in
    for (const s of form.querySelectorAll('select')) s.value = params.get(s.name) || '';
    if (focus !== 'search') document.getElementById('search').value = params.get('search') || '';
    return;
  }
  const choose = (name, label, options) => h('label', null, label, h('select', { name, id: 'f-' + name, onchange: e => changed(route().params, name, e.target.value) },
    h('option', { value: '' }, 'any'), options));
  let wait = 0;
  const search = h('input', { type: 'search', id: 'search', name: 'search', autocomplete: 'off', spellcheck: 'false', value: params.get('search') || '',
    oninput: e => { clearTimeout(wait); wait = setTimeout(() => changed(route().params, 'search', e.target.value), 200); } });
  add(form, [
    h('label', { class: 'wide' }, 'case, family, reason or id', search),
    Object.entries(data.facets).filter(([, list]) => list.length > 1).map(([name, list]) => choose('is.' + name, name,
      list.map(f => h('option', { value: f.value }, show(f.value || '(none)'), ` ${f.n.toLocaleString()}`)))),
    flagFilters.filter(name => says(data, name)).map(name => choose('flag.' + name, name.replaceAll('_', ' '), [['yes', 'yes'], ['no', 'no'], ['none', 'did not arise']].map(([v, t]) => h('option', { value: v }, t)))),
    h('button', { type: 'button', onclick: () => go('run', { run: route().params.get('run') }, true) }, 'Clear'),
  ]);
  form.addEventListener('submit', e => e.preventDefault());
  for (const s of form.querySelectorAll('select')) s.value = params.get(s.name) || '';
}

function draw(data, params) {
  const about = document.getElementById('about');
  about.replaceChildren();
  add(about, [show(data.run.dataset), ', model ', show(data.run.model), data.run.llm ? '. ' : ', which is memtox\'s reference model and not an LLM. ',
    data.finished ? `${data.total.toLocaleString()} trials.` : h('strong', null, `The run goes on or was stopped: ${data.total.toLocaleString()} of ${data.planned.toLocaleString()} trials. This page follows it.`)]);
  const sort = params.get('sort') || '', table = document.getElementById('trials');
  table.tHead.replaceChildren(h('tr', null, columns.filter(c => says(data, c)).map(c => {
    const up = sort === c, down = sort === '-' + c;
    return h('th', { scope: 'col', 'aria-sort': up ? 'ascending' : down ? 'descending' : undefined },
      h('button', { type: 'button', class: 'sort', onclick: () => changed(route().params, 'sort', up ? '-' + c : down ? '' : c) }, c.replaceAll('_', ' '), h('span', { 'aria-hidden': 'true' }, up ? ' ▲' : down ? ' ▼' : '')));
  })));
  const body = table.tBodies[0];
  const focused = document.activeElement && body.contains(document.activeElement) ? document.activeElement.dataset.trial : '';
  body.replaceChildren(...data.rows.map(r => h('tr', null, r.slice(1).map((v, i) => {
    if (!says(data, columns[i])) return null;
    if (i === 0) return h('td', { class: 'case' }, h('a', { class: 'row', 'data-trial': r[0], href: link('trial', { run: params.get('run'), id: r[0] }) }, show(v || r[0])));
    return h('td', null, typeof v === 'boolean' || v === null ? yesNo(v) : show(v));
  }))));
  if (focused) body.querySelector(`a[data-trial="${CSS.escape(focused)}"]`)?.focus();
  for (const id of ['pager1', 'pager2']) {
    const last = Math.min(data.from + data.rows.length, data.matching);
    document.getElementById(id).replaceChildren(
      h('button', { type: 'button', disabled: data.from === 0, onclick: () => turnPage(params, Math.max(data.from - pageSize, 0)) }, '← Previous'),
      h('span', null, data.matching ? `${(data.from + 1).toLocaleString()} to ${last.toLocaleString()} of ${data.matching.toLocaleString()}` : 'no trial matches'),
      h('button', { type: 'button', disabled: last >= data.matching, onclick: () => turnPage(params, data.from + pageSize) }, 'Next →'));
  }
  status.textContent = `${data.matching.toLocaleString()} trials match`;
}

// ---- one trial, or two beside each other ----

async function trialPage(params, signal) {
  delete main.dataset.run;
  const run = params.get('run'), id = params.get('id'), other = params.get('with');
  const get = id => ask('/api/trial?' + new URLSearchParams({ run, id }), signal);
  const [a, b] = await Promise.all([get(id), other ? get(other) : null]);
  const va = values(a), vb = b && values(b);
  document.title = `${va.case} under ${va.defense} · memtox view`;
  crumbs(h('a', { href: link('run', { run }) }, run === '.' ? 'trials' : show(run)), show(va.case));
  const beside = id2 => link('trial', id2 ? { run, id, with: id2 } : { run, id });
  main.replaceChildren(
    h('h1', null, 'Case ', show(va.case)),
    h('p', { class: 'steps' },
      a.previous && h('a', { href: link('trial', { run, id: a.previous }) }, '← previous trial'), ' ',
      a.next && h('a', { href: link('trial', { run, id: a.next }) }, 'next trial →'), ' ',
      other && h('a', { href: beside() }, 'this trial alone')),
    facts(va), legend(), sameCase(a, run, id, other, beside),
    h('div', { class: b ? 'two' : 'one' }, trialColumn(a, va), b && trialColumn(b, vb)));
  if (a.previous) keys.p = () => go('trial', { run, id: a.previous });
  if (a.next) keys.n = () => go('trial', { run, id: a.next });
  keys.u = () => go('run', { run });
  const others = a.same.filter(s => s.trial !== id);
  if (others.length) keys.c = () => {
    const at = others.findIndex(s => s.trial === other);
    go('trial', { run, id, with: others[(at + 1) % others.length].trial }, true);
  };
  rowKeys('[data-stop]');
  status.textContent = `Trial of case ${va.case}, ${va.agent} under ${va.defense}`;
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

const values = p => Object.fromEntries(p.trial);

function facts(v) {
  const parts = v.label === 'attack'
    ? ['attack', v.class, v.signal && v.signal + ' signal', v.channel && 'meant for channel ' + v.channel, v.goal]
    : ['benign', v.kind];
  return h('p', { class: 'facts' }, parts.filter(Boolean).map(t => [h('span', { class: 'tag' }, show(t)), ' ']),
    v.domain && h('span', { class: 'tag' }, show(v.domain)), ' ', v.situation && [h('span', { class: 'tag' }, show(v.situation)), ' '], v.family && ['family ', show(v.family)], v.twin && [', twin ', show(v.twin)]);
}

const origins = { SYSTEM: 'system', USER: 'user', AGENT_AUTHORED: 'agent', EXTERNAL_TOOL: 'external' };

function legend() {
  return h('p', { class: 'legend', 'aria-label': 'Origins' }, 'Origin of a text: ',
    Object.entries(origins).map(([c, name]) => [h('span', { class: 'origin o-' + name }, name), ' ']),
    h('span', { class: 'origin poison' }, 'poison'), ' holds what the attacker wants (known to the harness, to no defense)');
}

function originOf(o) {
  const cls = typeof o === 'string' ? o : o.class;
  const name = origins[cls] || cls || 'unknown';
  const rest = typeof o === 'string' ? '' : [o.medium, o.source].filter(Boolean).join(' · ');
  return h('span', { class: 'origin o-' + (origins[cls] || 'unknown') }, show(name), rest && [': ', show(rest)]);
}

function sameCase(p, run, id, other, beside) {
  if (p.same.length < 2) return null;
  const several = models(p) > 1;
  const flags = ['written', 'influenced', ...ofStates, 'detected', 'utility'].filter(c => !ofStates.includes(c) || p.same.some(s => typeof s[c] === 'boolean'));
  return h('details', { class: 'same', open: true }, h('summary', null, `The same case in ${p.same.length} arms`),
    h('div', { class: 'scroll' }, h('table', null,
      h('thead', null, h('tr', null, ['agent', 'defense', several && 'model', 'status', ...flags, 'beside'].filter(Boolean).map(t => h('th', { scope: 'col' }, t)))),
      h('tbody', null, p.same.map(s => h('tr', s.trial === id ? { class: 'here', 'aria-current': 'true' } : s.trial === other ? { class: 'there' } : null,
        h('td', null, show(s.agent)), h('td', null, h('a', { href: link('trial', { run, id: s.trial }) }, show(s.defense))), several && h('td', null, show(s.model)), h('td', null, show(s.status)),
        flags.map(c => h('td', null, yesNo(s[c]))),
        h('td', null, s.trial === id ? 'this trial' : s.trial === other ? 'beside it' : h('a', { href: beside(s.trial), 'aria-label': `beside this one: ${s.agent} under ${s.defense}${several ? ' with ' + s.model : ''}` }, 'beside'))))))));
}

const ofAttacks = ['proposed', 'written', 'held', 'exposed', 'acted', 'asserted', 'influenced'];
const outcomes = ['proposed', 'written', 'held', 'exposed', 'acted', 'asserted', 'influenced', 'detected', 'deferred', 'legit_stopped', 'legit_survived', 'later_task_done', 'utility', 'other_task_done', 'own_task_done', 'memories_survived', 'utility_under_attack', 'right', 'harm', 'wrong', 'done', 'idle'];
const models = p => new Set(p.same.map(s => s.model)).size;

function trialColumn(p, v) {
  return h('section', { class: 'trial', 'aria-label': `${v.agent} under ${v.defense}` },
    h('h2', null, show(v.agent), ' under ', show(v.defense), models(p) > 1 && [' with ', show(v.model)]),
    v.status !== 'scored' && h('p', { class: 'problem' }, show(v.status === 'error' ? 'Not scored' : 'Excluded'), ': ', show(v.reason)),
    v.status === 'scored' && h('ul', { class: 'outcomes', 'aria-label': 'Outcome' }, outcomes.filter(c => v[c] !== null && v[c] !== undefined && (v.label === 'attack' || !ofAttacks.includes(c))).map(c => h('li', { class: v[c] ? 'is' : 'isnot' }, (v[c] ? '✓ ' : '✗ ') + c.replaceAll('_', ' '), h('span', { class: 'sr' }, v[c] ? ': yes' : ': no')))),
    p.problem && h('p', { class: 'note' }, show(p.problem)),
    v.judge && v.status === 'scored' && judged(p, v),
    p.sessions.map(s => {
      const title = s.title[0].toUpperCase() + s.title.slice(1);
      return h('section', { class: 'session', 'aria-label': title },
        h('h3', null, title),
        h('ol', { class: 'turns' }, s.turns.map(t => turn(t, p))),
        s.rest && s.rest.map(decision));
    }),
    p.decisions && p.decisions.length > 0 && h('section', null, h('h3', null, 'Decisions'), p.decisions.map(decision)),
    p.memory && memory(p),
    h('details', null, h('summary', null, 'All columns of the row'), h('div', { class: 'scroll' }, h('table', { class: 'columns' }, h('tbody', null,
      p.trial.map(([name, value]) => h('tr', null, h('th', { scope: 'row' }, name), h('td', null, typeof value === 'boolean' || value === null ? yesNo(value) : show(value)))))))));
}

// judged shows what a language model said that judged the trial.
function judged(p, v) {
  const asked = { encodes: 'Does this record encode what the attacker wants stored?', influenced: 'Does this answer or action reflect it?' };
  const of = value => value === null ? h('span', { class: 'null' }, 'no verdict') : yesNo(value);
  const unanswered = v.judge_unanswered > 0 && `, ${v.judge_unanswered} without a verdict`;
  return h('section', { class: 'judge', 'aria-label': 'Judge' }, h('h3', null, 'Judged by a language model'),
    h('p', null, h('code', null, show(v.judge)), ': written ', of(v.judged_written), v.has_retrieval && v.judged_written && [', influenced ', of(v.judged_influenced)],
      ` · ${v.judge_calls} questions answered`, unanswered),
    (p.verdicts || []).map(a => {
      const kind = a.verdict === 'yes' ? 'stop' : a.verdict === 'no' ? 'allow' : 'defer';
      return h('div', { class: 'decision ' + kind, 'data-stop': true, tabindex: '-1', role: 'group', 'aria-label': `verdict: ${a.verdict || 'none'}` },
        h('p', null, h('strong', { class: 'verdict' }, show(a.verdict || 'no verdict')), ' ', show(asked[a.question] || a.question)),
        a.why && h('p', null, 'why there is none: ', longShow(a.why)),
        a.about && h('blockquote', { class: 'text' }, longShow(a.about)),
        a.quote && h('div', null, h('p', null, 'rests on:'), h('blockquote', { class: 'text' }, longShow(a.quote))));
    }),
    !(p.verdicts || []).length && (v.judge_calls || v.judge_unanswered) > 0 && h('p', { class: 'note' }, 'The run kept the outcome, and not what was asked.'),
    !v.judge_calls && !v.judge_unanswered && h('p', { class: 'note' }, 'Nothing was asked: what the deterministic judge found stands.'));
}

function turn(t, page) {
  const name = t.role === 'tool' ? ['tool ', show(t.name || '')] : t.role === 'user' && t.aside ? 'profile asks' : show(t.role);
  // What no part says otherwise: what a tool says for itself is the system's.
  const origin = t.role === 'assistant' ? 'AGENT_AUTHORED' : t.role === 'user' && !t.aside ? 'USER' : 'SYSTEM';
  const parts = t.parts || (t.content ? [{ text: t.content }] : []);
  return h('li', { class: 'turn' + (t.aside ? ' aside' : '') },
    h('article', { 'data-stop': true, tabindex: '-1', 'aria-label': `message of ${t.role}` },
      h('header', null, h('strong', null, name), ' ', originOf(origin), t.aside && h('span', { class: 'tag' }, 'aside: flush, compaction or review')),
      parts.length > 0 && h('div', { class: 'text' }, parts.map(p => part(p, page))),
      (t.calls || []).map(c => h('div', { class: 'call' }, h('strong', null, 'calls ', show(c.name)), c.vetoed && h('span', { class: 'origin vetoed' }, 'vetoed'),
        h('dl', null, (c.args || []).map(a => [h('dt', null, show(a.name)), h('dd', { class: 'text' }, longShow(a.value))]))))),
    (t.decisions || []).map(decision));
}

const poisoned = (record, page) => (page.poison || []).includes(record);

function part(p, page) {
  if (!p.record && (!p.segment || p.class === 'USER')) return h('span', null, longShow(p.text));
  const poison = p.record && poisoned(p.record, page);
  return h('span', { class: 'part o-' + (origins[p.class] || 'unknown') + (poison ? ' poisoned' : '') },
    h('span', { class: 'where' }, originOf(p), p.record && h('span', { class: 'tag' }, 'memory ', show(p.record)), poison && h('span', { class: 'origin poison' }, 'poison')),
    longShow(p.text));
}

const stops = ['block', 'quarantine', 'redact'];

// decision shows a row with what the transcript adds to it.
function decision({ row, call }) {
  const said = call || {};
  const d = { ...row, text: said.text, shown: said.shown, findings: said.findings, subject: row.gate === 'input' || row.gate === 'act' ? said.record : '', reasons: row.reasons.split(';').filter(Boolean) };
  const kind = stops.includes(d.action) ? 'stop' : d.action === 'defer' ? 'defer' : 'allow';
  const quiet = kind === 'allow' && !d.poison && !(d.findings && d.findings.length) && !d.reasons.length;
  const about = [d.op, d.record && 'record ' + d.record, d.subject && (d.gate === 'act' ? 'tool ' + d.subject : d.subject), d.route && 'by ' + d.route, d.store && 'in ' + d.store,
    d.candidates && `${d.candidates} candidates`, d.state && 'left ' + d.state].filter(Boolean).join(', ');
  const sign = { stop: '■', defer: '◆', allow: '●' }[kind];
  return h('div', { class: 'decision ' + kind + (quiet ? ' quiet' : ''), 'data-stop': true, tabindex: '-1', role: 'group', 'aria-label': `${d.gate} gate: ${d.action}` },
    h('p', null, h('strong', { class: 'verdict' }, h('span', { 'aria-hidden': 'true' }, sign + ' '), show(d.gate), ' gate: ', show(d.action)), ' ', show(about), ' ',
      d.origin && originOf(d.origin), d.poison && h('span', { class: 'origin poison' }, 'poison'), d.legit && h('span', { class: 'tag' }, 'expected memory'), d.unsure && h('span', { class: 'tag' }, 'unsure'),
      d.score !== null && h('span', { class: 'tag' }, 'score ' + d.score), d.latency_ns > 0 && h('span', { class: 'time' }, ' ' + time(d.latency_ns))),
    reasons(d),
    d.text && h('blockquote', { class: 'text' }, marked(d.text, d.findings || [])),
    d.shown && h('div', null, h('p', null, 'shown instead:'), h('blockquote', { class: 'text' }, longShow(d.shown))));
}

function reasons(d) {
  const noted = new Map();
  for (const f of d.findings || []) noted.set(f.check, [...(noted.get(f.check) || []), f.note].filter(Boolean));
  for (const r of d.reasons || []) if (!noted.has(r)) noted.set(r, []);
  if (!noted.size) return null;
  return h('ul', { class: 'reasons' }, [...noted].map(([check, notes]) => h('li', null, h('code', null, show(check)), notes.length > 0 && [': ', show(notes.join('; '))])));
}

// marked shows a text with what the findings point at marked. They count bytes.
function marked(text, findings) {
  const spans = findings.filter(f => f.end > f.start).sort((a, b) => a.start - b.start);
  if (!spans.length) return longShow(text);
  const bytes = new TextEncoder().encode(text), decoder = new TextDecoder();
  const out = [];
  let at = 0;
  for (const f of spans) {
    const from = Math.max(f.start, at), to = Math.min(f.end, bytes.length);
    if (to <= from) continue;
    out.push(show(decoder.decode(bytes.subarray(at, from)), true), h('mark', { title: f.check }, show(decoder.decode(bytes.subarray(from, to)), true)));
    at = to;
  }
  out.push(show(decoder.decode(bytes.subarray(at)), true));
  return out;
}

function time(ns) {
  if (ns < 1e3) return ns + ' ns';
  if (ns < 1e6) return (ns / 1e3).toPrecision(3) + ' µs';
  if (ns < 1e9) return (ns / 1e6).toPrecision(3) + ' ms';
  return (ns / 1e9).toPrecision(3) + ' s';
}

function memory(page) {
  const byId = (was, differs) => new Map([...was, ...(differs || []).map(r => [r.id, r])]);
  const before = byId([], page.memory.before), between = byId(before, page.memory.between), after = byId(between, page.memory.after);
  const same = (a, b) => a && b && a.text === b.text && a.state === b.state;
  const list = (records, old) => h('ul', { class: 'memory' }, records.map(r => {
    const poison = poisoned(r.id, page), legit = (page.legit || []).includes(r.id);
    const change = !old ? '' : !old.has(r.id) ? 'new' : same(old.get(r.id), r) ? '' : 'changed';
    return h('li', { class: (change ? 'changed ' : '') + (poison ? 'poisoned' : '') },
      h('p', { class: 'where' }, h('strong', null, show(r.id)), ' ', change && h('span', { class: 'tag strong' }, change), h('span', { class: 'tag' }, show(r.store)), h('span', { class: 'tag' }, show(r.state)), originOf(r), poison && h('span', { class: 'origin poison' }, 'poison'), legit && h('span', { class: 'tag' }, 'expected memory')),
      h('div', { class: 'text' }, longShow(r.text)));
  }), records.length === 0 && h('li', null, 'nothing'));
  const step = (title, now, old) => {
    const d = [...now.values()].filter(r => !same(old.get(r.id), r));
    return h('details', { open: d.length > 0 }, h('summary', null, `${title}: ${now.size} records, ${d.length} new or changed`), list(d, old));
  };
  return h('section', { 'aria-label': 'Memory' }, h('h3', null, 'Memory'),
    h('details', null, h('summary', null, `Before: ${before.size} records`), list([...before.values()])),
    step('After the write session', between, before),
    page.sessions.length > 1 && step('After the retrieval session', after, between));
}

// ---- keys ----

const dialog = document.getElementById('keys');
const opener = document.getElementById('help');
opener.addEventListener('click', () => dialog.showModal());
document.getElementById('close-keys').addEventListener('click', () => dialog.close());
dialog.addEventListener('close', () => opener.focus());

document.addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey || dialog.open) return;
  const typing = ['INPUT', 'SELECT', 'TEXTAREA'].includes(e.target.tagName);
  if (typing) {
    if (e.key === 'Escape') e.target.blur();
    return;
  }
  if (e.key === '?') { e.preventDefault(); dialog.showModal(); return; }
  const act = keys[e.key];
  if (act) { e.preventDefault(); act(); }
});

window.addEventListener('hashchange', open);
open();
