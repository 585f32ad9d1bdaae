// The page on which a person decides what the guard may let through. Every text that it
// shows is hostile: it is put into text nodes alone, never into markup.
'use strict';
(() => {

const waits = document.getElementById('waits'), stands = document.getElementById('stands');
const count = document.getElementById('count'), problem = document.getElementById('problem');

// h makes an element. Children are nodes or texts; a text becomes a text node.
function h(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v);
  }
  e.append(...children.flat().filter(c => c !== undefined && c !== null && c !== ''));
  return e;
}

// What cannot be seen, turns the direction of what can, or is a space that looks like none or another.
const unseen = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]|(?! )\p{Zs}/u;
// Letters and digits that pass for Latin ones, in a word that has some of those, or that is an address or a number.
const latin = /\p{Script=Latin}|[\d@/]|[.:]\S/u, alike = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u{1d400}-\u{1d7ff}]/u;

// show returns nodes for a text, with what cannot be seen, or passes for something else,
// made visible.
function show(text) {
  const out = [];
  for (const word of String(text ?? '').split(/([ \n\t]+)/)) {
    const mixed = latin.test(word) && alike.test(word);
    for (const c of word) {
      const odd = mixed && alike.test(c);
      if (!odd && (c === '\n' || c === '\t' || !unseen.test(c))) {
        if (typeof out.at(-1) === 'string') out[out.length - 1] += c;
        else out.push(c);
        continue;
      }
      const name = 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
      out.push(h('span', { class: 'unseen', title: odd ? `${name}, a letter that only looks like a Latin one` : `${name}, a character that is not seen` },
        odd ? `${c} (${name})` : name));
    }
  }
  return out;
}

function field(list, name, ...value) {
  if (value.flat().some(v => v !== '')) list.append(h('dt', null, name), h('dd', { class: 'text' }, ...value));
}

const time = t => t ? new Date(t).toLocaleString() : '';
const kinds = { memory: 'an entry of the memory', write: 'a write to the agent’s memory', call: 'a call of a tool', source: 'an approved source' };

// card shows one thing; buttons are those that decide about it.
function card(e, buttons) {
  const list = h('dl');
  if (e.args) {
    field(list, 'Tool', show(e.tool));
    for (const a of e.args) {
      field(list, 'Argument', h('b', null, show(a.name)), ' ', h('span', { class: 'value' }, show(a.value)),
        a.role || a.type ? h('span', { class: 'as' }, 'as ', show([a.role, a.type].filter(Boolean).join(', '))) : '',
        (a.from || []).map(f => h('span', { class: 'outside' }, 'from ', show(f))));
    }
  } else {
    field(list, e.kind === 'source' ? 'Rule' : 'It says', h('span', { class: 'value' }, show(e.content)));
    if (e.key && !e.key.endsWith('/' + e.id)) field(list, 'Under the key', h('span', { class: 'value' }, show(e.key)));
    if (e.kind !== 'source') field(list, 'From', show(`${e.source || 'a source without a name'} (${e.source_class})`));
    if (e.replaces) field(list, 'In place of', show(e.replaces), ' ', h('span', { class: 'value' }, show(e.replaces_content)));
  }
  field(list, e.claimed ? 'The agent says that you asked' : 'The user asked', show(e.request));
  field(list, 'For', show(e.principal), e.in ? `${e.principal ? ', in ' : 'in '}conversation ${e.in}` : '');
  field(list, 'Because', show(e.why));
  if (e.state === 'approved' || e.state === 'refused') field(list, 'By', show(e.by));
  field(list, 'Since', time(e.created));
  field(list, 'Until', time(e.expires));
  const said = h('p', { class: 'said', role: 'status' });
  const why = h('input', { type: 'text', maxlength: '400', autocomplete: 'off' });
  const row = h('div', { class: 'row' }, h('label', null, 'Your reason, for the log ', why));
  const box = h('article', { 'data-id': e.id, 'data-state': e.state },
    h('h3', null, show(e.id), ': ', kinds[e.kind] || show(e.kind), e.state === 'held' ? '' : `, ${e.state}`), list, row, said);
  const decide = async decision => {
    for (const b of box.querySelectorAll('button')) b.disabled = true;
    try {
      await door('decide', { method: 'POST', headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ id: e.id, decision, why: why.value }) });
      decided++;
      row.remove();
      box.dataset.state = decision;
      said.replaceChildren({ approve: 'You approved it, once.', source: 'You approved it and its source.', reject: e.state === 'approved' ? 'You took it back.' : 'You refused it.' }[decision]);
    } catch (err) {
      for (const b of box.querySelectorAll('button')) b.disabled = false;
      said.replaceChildren(...show(err.message));
    }
    look();
  };
  row.append(...buttons(decide, e));
  return box;
}

const button = (text, kind, f) => h('button', { type: 'button', class: kind, onclick: f }, text);

function decisions(decide, e) {
  const out = [button('Approve once', 'yes', () => decide('approve')), button('Refuse', 'no', () => decide('reject'))];
  if (e.rule) {
    const sure = h('span', { class: 'sure', hidden: '' }, 'From now on, without a question: ', show(e.rule), '. ',
      button('Yes, approve the source', 'yes', () => decide('source')));
    out.splice(1, 0, button('Approve its source …', 'source', () => { sure.hidden = !sure.hidden; }));
    out.push(sure);
  }
  return out;
}

function turnings(decide, e) {
  return [e.state === 'refused' ? button('Approve once after all', 'yes', () => decide('approve'))
    : button('Take it back', 'no', () => decide('reject'))];
}

// place shows what is new behind what is there, so that nothing moves under the pointer.
// What is gone from the list says so where it stands.
function place(box, list, buttons, over) {
  const there = new Map([...box.children].map(c => [c.dataset.id, c]));
  for (const e of list) {
    const old = there.get(e.id);
    there.delete(e.id);
    if (!old || old.dataset.state !== e.state && old.dataset.known) {
      const now = card(e, buttons);
      now.dataset.known = 'yes';
      if (old) old.replaceWith(now); else box.append(now);
    }
  }
  for (const gone of there.values()) {
    gone.dataset.known = '';
    for (const b of gone.querySelectorAll('.row')) {
      b.remove();
      gone.querySelector('.said').replaceChildren(over);
    }
  }
}

let asking = false, again = false, version = '', until = 0, decided = 0;

async function look() {
  if (asking) { again = true; return; }
  asking = true;
  try {
    // What expires changes no version: the list is asked for again when the next thing does.
    // A list that was asked for before a decision would open again what was decided: it is asked for anew.
    const before = decided;
    const list = await door('pending' + (Date.now() < until ? '?version=' + version : ''));
    if (list.pending && before === decided) shown(list);
    problem.hidden = true;
  } catch (err) {
    problem.replaceChildren('The guard does not answer: ', ...show(err.message));
    problem.hidden = false;
  }
  asking = false;
  if (again) { again = false; look(); }
}

function shown(list) {
  version = list.version;
  until = Math.min(Date.now() + 60000, ...[...list.pending, ...list.standing].filter(e => e.expires).map(e => Date.parse(e.expires)));
  place(waits, list.pending, decisions, 'It waits no longer: somebody decided, or it expired.');
  place(stands, list.standing, turnings, 'It stands no longer: it was used, turned round, or expired.');
  document.getElementById('stands-section').hidden = !stands.children.length;
  const n = list.waiting, more = n - list.pending.length;
  const text = (n === 0 ? 'Nothing waits.' : n === 1 ? '1 decision waits.' : `${n} decisions wait.`) +
    (more ? ` The ${list.pending.length} oldest are shown, of calls and of entries each.` : '');
  if (count.textContent !== text) count.textContent = text;
  document.title = (n ? `(${n}) ` : '') + 'memtox guard';
}

look();
setInterval(look, 2000);

})();
