// The token of the address goes into the storage of this page's origin, which no server at
// another port has, and from there into each request of the API. The address bar forgets it.
'use strict';
globalThis.door = (() => {

// A page with links that open in other tabs has it in all of them.
const store = () => document.documentElement.hasAttribute('data-tabs') ? localStorage : sessionStorage;
let token = '';

// take reports whether the address held a token.
function take() {
  const found = /^#token=([0-9a-f]+)(.*)$/s.exec(location.hash);
  if (!found) return false;
  token = found[1];
  try { store().setItem('token', token); } catch { /* it lasts as long as this page */ }
  history.replaceState(null, '', location.pathname + (found[2] && '#' + found[2]));
  return true;
}

if (!take()) try { token = store().getItem('token') || ''; } catch { /* there is none */ }
addEventListener('hashchange', e => { if (take()) { e.stopImmediatePropagation(); location.reload(); } });

// ask is fetch with the token. The answer is an object; what is none is an error.
return async (path, init = {}) => {
  const r = await fetch('api/' + path, { ...init, credentials: 'omit', headers: { ...init.headers, Authorization: 'Bearer ' + token } });
  const body = (r.headers.get('Content-Type') || '').startsWith('application/json') ? await r.json() : { error: await r.text() };
  if (!r.ok) throw new Error(body.error || r.statusText);
  return body;
};

})();
