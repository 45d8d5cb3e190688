'use strict';
// What comes from the server is set as text only, never as markup.
const $ = id => document.getElementById(id);
const state = { rows: new Map(), about: null, live: false, trouble: '', silent: [], hidden: 0, offset: 0, health: null, looked: false };
const view = { page: 'list', key: '', filter: '', sort: 'contention', most: 250, range: 300, details: null, trend: [] };
const sorts = ['contention', 'wait', 'held', 'left', 'name'];

// ---- small tools
function el(tag, attributes = {}, ...children) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'class') one.className = value;
    else if (name.startsWith('on')) one.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) one.setAttribute(name, value === true ? '' : value);
  }
  one.append(...children.filter(child => child !== null && child !== undefined));
  return one;
}
function svg(tag, attributes = {}, ...children) {
  const one = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  one.append(...children);
  return one;
}
// Changes the page only where it differs.
function say(one, text) { if (one.textContent !== text) one.textContent = text; }
// Control characters, and those that turn text around or are invisible, are shown as what they are.
function visible(text) {
  const shown = String(text).slice(0, 500).replace(/[\u0000-\u001f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, c => '⟨' + c.charCodeAt(0).toString(16) + '⟩');
  return String(text).length > 500 ? shown + '…' : shown;
}
function span(ms) {
  ms = Math.max(0, ms);
  if (ms < 1000) return Math.round(ms) + ' ms';
  const s = Math.floor(ms / 1000);
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' m ' + (s % 60 ? s % 60 + ' s' : '');
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + (Math.floor(s / 60) % 60) + ' m';
  return Math.floor(s / 86400) + ' d ' + (Math.floor(s / 3600) % 24) + ' h';
}
const clock = ms => new Date(ms).toLocaleTimeString([], { hour12: false });
const now = () => Date.now() + state.offset;
const plural = (n, word) => n + ' ' + word + (n === 1 ? '' : 's');
const person = p => !p ? '' : p.program !== undefined ? p.program : p.id;
const place = p => !p || p.program === undefined ? 'another program, or gone' : p.user + '@' + p.host + ' · pid ' + p.pid;
const sleep = ms => new Promise(done => setTimeout(done, ms));
const store = { get: k => { try { return sessionStorage.getItem(k) || localStorage.getItem(k); } catch { return null; } },
                set: (where, k, v) => { try { where().setItem(k, v); } catch { /* private mode */ } } };

// ---- the token: from the address, then only in this tab
function takeToken() {
  const found = /^#token=([\x21-\x7e]+)$/.exec(location.hash);
  if (!found) return;
  store.set(() => sessionStorage, 'token', decodeURIComponent(found[1]));
  history.replaceState(null, '', '#/');
}
const authorization = () => { const token = store.get('token'); return token ? { Authorization: 'Bearer ' + token } : {}; };
function askToken() {
  return new Promise(done => {
    const dialog = $('ask-token');
    dialog.addEventListener('close', () => { store.set(() => sessionStorage, 'token', $('token').value.trim()); $('token').value = ''; done(); }, { once: true });
    if (!dialog.open) dialog.showModal();
  });
}

// ---- the stream
async function listen() {
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    const ending = new AbortController();
    let watch = 0;
    const alive = () => { clearTimeout(watch); watch = setTimeout(() => ending.abort(), 30000); };
    try {
      alive();
      const answer = await fetch('events', { headers: authorization(), cache: 'no-store', signal: ending.signal });
      if (answer.status === 401) { clearTimeout(watch); await askToken(); wait = 250; continue; }
      if (!answer.ok) throw new Error(await answer.text());
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        alive();
        wait = 500;
        text += value;
        for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) take(text.slice(0, end));
      }
      setLive(false, 'The connection to holdfast web has ended. Is it still running?');
    } catch (why) {
      setLive(false, why.name === 'AbortError' || why instanceof TypeError ? 'holdfast web does not answer. Is it still running?' : why.message);
    }
    clearTimeout(watch);
    await sleep(wait);
  }
}
function take(block) {
  const lines = block.split('\n');
  const event = lines.find(line => line.startsWith('event: '));
  const data = lines.find(line => line.startsWith('data: '));
  if (event && data) handlers[event.slice(7)]?.(JSON.parse(data.slice(6)));
}
const handlers = {
  state(all) {
    state.about = all;
    state.rows = new Map(all.locks.map(row => [row.key, row]));
    state.offset = all.looked ? all.now - Date.now() : 0;
    Object.assign(state, { silent: all.silent, hidden: all.hidden, trouble: all.trouble, looked: all.looked });
    setLive(true);
    say($('where'), all.servers.map(visible).join(', ') + (all.local ? '  (local)' : ''));
    document.title = 'holdfast · ' + all.servers.map(visible).join(', ');
    render(true);
  },
  change(news) {
    for (const row of news.set) state.rows.set(row.key, row);
    for (const key of news.gone) state.rows.delete(key);
    state.offset = state.looked ? Math.max(state.offset, news.now - Date.now()) : news.now - Date.now();
    Object.assign(state, { silent: news.silent, hidden: news.hidden, trouble: '', looked: true });
    const mine = view.page === 'lock' && (news.gone.includes(view.key) || news.set.some(row => row.key === view.key));
    render(mine);
  },
  trouble(why) { state.trouble = why.text; render(); },
  health(found) { state.health = found; render(); },
  notice(what) { notify('“' + visible(what.name) + '”: ' + what.text); refreshDetails(); },
};
function setLive(on, why = '') {
  state.live = on;
  state.why = why;
  $('live').classList.toggle('on', on);
  say($('live').lastElementChild, on ? 'live' : 'not connected');
  render();
}
function notify(text) {
  const box = $('notice');
  say(box, text);
  box.hidden = false;
  clearTimeout(notify.timer);
  notify.timer = setTimeout(() => { box.hidden = true; }, 8000);
}

// ---- everything on the page
function render(refetch = false) {
  const problem = !state.live ? (state.about ? state.why : '') : state.trouble ||
    state.silent.map(one => one.error).join(' · ');
  $('banner').hidden = !problem;
  say($('banner'), visible(problem || ''));
  $('content').classList.toggle('stale', !state.live || Boolean(state.trouble));
  for (const [page, nav] of [['list', 'nav-locks'], ['lock', null], ['health', 'nav-health']]) {
    $('page-' + page).hidden = view.page !== page;
    if (nav) $(nav).classList.toggle('here', view.page === page || (page === 'list' && view.page === 'lock'));
  }
  renderBadge();
  if (view.page === 'list') renderList();
  if (view.page === 'lock') { if (refetch) refreshDetails(); tickLock(); }
  if (view.page === 'health') renderHealth();
}

// ---- the table of locks
function compare(a, b) {
  const since = (x, y) => (x ?? Infinity) - (y ?? Infinity) || 0;
  if (view.sort === 'contention') { const more = b.waiters - a.waiters; if (more) return more; }
  if (view.sort === 'contention' || view.sort === 'wait') { const earlier = since(a.waiting_since, b.waiting_since); if (earlier) return earlier; }
  if (view.sort === 'held') { const longer = since(a.since, b.since); if (longer) return longer; }
  if (view.sort === 'left') { const sooner = since(a.until, b.until); if (sooner) return sooner; }
  return a.name < b.name ? -1 : a.name > b.name ? 1 : a.key < b.key ? -1 : 1;
}
function matches(row) {
  if (!view.filter) return true;
  const holder = row.holder || {};
  return [row.name, holder.host, holder.user, holder.program, holder.id, holder.note].some(text => text && String(text).toLowerCase().includes(view.filter));
}
const table = { rows: new Map(), order: [] };
function makeRow(key) {
  const cell = (name = '') => el('td', { class: name });
  const tr = el('tr', { onclick: event => { if (!event.defaultPrevented) location.hash = '#/lock/' + key; } });
  const link = el('a', { class: 'name', href: '#/lock/' + key });
  const parts = { tr, link, mode: el('span', { class: 'sub' }), who: el('span', { class: 'name' }), host: el('span', { class: 'sub' }), note: el('span', { class: 'sub' }),
    held: cell('num'), text: el('span', { class: 'lease-text' }), bar: el('span', { class: 'bar' }, el('i')),
    token: cell('num token'), count: el('b'), longest: el('span', { class: 'sub' }), crowd: el('span', { class: 'bar' }, el('i')) };
  const waiting = cell('waiting');
  parts.waiting = waiting;
  waiting.append(parts.count, parts.longest, parts.crowd);
  const name = cell(); name.append(link, parts.mode);
  const holder = cell(); holder.append(parts.who, parts.host, parts.note);
  const lease = cell(); lease.append(parts.text, parts.bar);
  tr.append(name, holder, parts.held, lease, parts.token, waiting);
  return parts;
}
function modeText(row) {
  const words = { exclusive: 'mutex', read: row.holders > 1 ? plural(row.holders, 'reader') : 'read', write: 'write', free: 'free', moving: 'moving between members', 'not a lock': 'not a lock' };
  if (row.permits) words.semaphore = row.permits.out + ' of ' + plural(row.permits.limit, 'permit');
  return (words[row.mode] || row.mode) + (row.holder && row.holder.kept ? ' · kept' : '') + (row.raw ? ' · raw key' : '') + (row.backing && row.backing.servers < row.backing.of ? ' · ' + row.backing.servers + ' of ' + row.backing.of + ' servers' : '');
}
function showLease(text, bar, until, lease, held) {
  bar.hidden = until === undefined;
  if (until === undefined) return say(text, held ? 'no limit' : '–');
  const left = until - now();
  const part = Math.max(0, Math.min(1, left / Math.max(1, lease)));
  say(text, left > 0 ? span(left) : 'over');
  bar.firstElementChild.style.width = (part * 100).toFixed(1) + '%';
  bar.className = 'bar' + (left <= 0 ? ' out' : part < .25 ? ' low' : '');
}
function fillRow(parts, row, most) {
  say(parts.link, visible(row.name));
  say(parts.mode, modeText(row));
  say(parts.who, row.holder ? visible(person(row.holder)) + (row.holders > 1 ? ' and ' + (row.holders - 1) + ' more' : '') : '–');
  say(parts.host, row.holder ? visible(place(row.holder)) : '');
  say(parts.note, row.holder && row.holder.note ? visible(row.holder.note) : '');
  say(parts.held, row.since !== undefined ? span(now() - row.since) : '–');
  showLease(parts.text, parts.bar, row.until, row.lease, Boolean(row.holder));
  say(parts.token, row.token || '–');
  parts.waiting.classList.toggle('none', !row.waiters);
  say(parts.count, row.waiters ? String(row.waiters) : '–');
  say(parts.longest, row.waiters ? 'longest ' + span(now() - row.waiting_since) : '');
  parts.crowd.hidden = !row.waiters;
  parts.crowd.firstElementChild.style.width = (100 * row.waiters / most).toFixed(1) + '%';
  parts.tr.classList.toggle('hot', row.waiters > 0);
  parts.tr.classList.toggle('free', !row.holder);
}
function renderList() {
  const all = [...state.rows.values()];
  const shown = all.filter(matches).sort(compare);
  const page = shown.slice(0, view.most);
  const most = Math.max(1, ...page.map(row => row.waiters));
  const order = page.map(row => row.key);
  for (const row of page) {
    if (!table.rows.has(row.key)) table.rows.set(row.key, makeRow(row.key));
    fillRow(table.rows.get(row.key), row, most);
  }
  if (order.join(' ') !== table.order.join(' ')) {
    const focused = document.activeElement;
    $('locks').tBodies[0].replaceChildren(...order.map(key => table.rows.get(key).tr));
    if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    table.order = order;
    const wanted = new Set(order);
    for (const key of table.rows.keys()) if (!wanted.has(key)) table.rows.delete(key);
  }
  const waiters = all.reduce((sum, row) => sum + row.waiters, 0);
  const longest = Math.min(...all.filter(row => row.waiters).map(row => row.waiting_since));
  say($('sum-held'), String(all.filter(row => row.holders).length));
  say($('sum-contended'), String(all.filter(row => row.waiters).length));
  say($('sum-waiting'), String(waiters));
  say($('sum-longest'), Number.isFinite(longest) ? span(now() - longest) : '–');
  $('locks').hidden = !page.length;
  $('empty').hidden = page.length > 0;
  say($('empty'), !state.about ? 'Connecting …' : view.filter && all.length ? 'No lock, host, user or command matches.' :
    state.looked ? 'Nobody holds a lock, and nobody waits for one.' : 'Looking …');
  const rest = shown.length - page.length;
  $('more').hidden = !rest && !state.hidden;
  say($('more').firstElementChild, state.hidden && !rest ? plural(state.hidden, 'lock') + ' with fewer waiters not shown.' : rest + ' more.');
  $('more').lastElementChild.hidden = !rest;
}
function addToTrend() {
  if (!state.live) return;
  view.trend.push([...state.rows.values()].reduce((sum, row) => sum + row.waiters, 0));
  if (view.trend.length > 120) view.trend.shift();
  if (view.page !== 'list' || view.trend.length < 2) return;
  const top = Math.max(4, ...view.trend) * 1.1;
  const points = view.trend.map((n, i) => (120 - view.trend.length + 1 + i).toFixed(1) + ' ' + (28 - 27 * n / top).toFixed(1));
  $('trend').replaceChildren(svg('path', { d: 'M' + points.join('L') + 'V30H' + (120 - view.trend.length) + 'Z' }));
}

// ---- one lock
async function refreshDetails() {
  const key = view.key;
  if (view.page !== 'lock' || refreshDetails.busy) { refreshDetails.again = true; return; }
  refreshDetails.busy = true;
  try {
    const answer = await fetch('lock?key=' + key, { headers: authorization(), cache: 'no-store' });
    if (key === view.key && answer.ok) view.details = await answer.json();
    if (key === view.key && answer.status === 404 && view.details) Object.assign(view.details, { holders: [], waiters: [], waiters_total: 0, holders_total: 0, mode: 'free' });
    view.missing = answer.status === 404 && !view.details;
  } catch { /* the stream says what is wrong */ }
  await sleep(300);
  refreshDetails.busy = false;
  renderLock();
  if (refreshDetails.again || key !== view.key) { refreshDetails.again = false; refreshDetails(); }
}
// A colour for each client, in the order in which they held the lock.
function hues(holds) {
  const seen = new Map();
  for (const one of holds) { const client = one.id.split('.')[0]; if (!seen.has(client)) seen.set(client, seen.size); }
  return id => 'h' + seen.get(id.split('.')[0]) % 6;
}
const lock = { ticks: [] };
function renderLock() {
  if (view.page !== 'lock') return;
  const page = $('page-lock');
  const d = view.details;
  if (!d || d.web_key !== view.key) {
    page.replaceChildren(title('', []), el('p', { class: 'empty' }, view.missing ? 'Nobody holds this lock, and nobody waits for it.' : 'Looking …'));
    return;
  }
  lock.ticks = [];
  const focus = document.activeElement?.dataset?.focus;
  page.replaceChildren(
    title(visible(d.name), [el('span', { class: 'pill ' + (d.mode === 'free' ? '' : 'held') }, d.semaphore ? d.semaphore.out + ' of ' + plural(d.semaphore.limit, 'permit') : d.mode === 'exclusive' ? 'mutex' : d.mode), el('span', {}, 'key ', el('code', {}, visible(d.key))), el('span', {}, 'last token ', el('code', {}, String(d.last_token ?? '–')))]),
    el('div', { class: 'columns' }, holdersCard(d), queueCard(d)),
    timelineCard(d),
    el('div', { class: 'columns' }, histogramCard(d.history), handoversCard(d.history)));
  if (focus) page.querySelector('[data-focus="' + CSS.escape(focus) + '"]')?.focus();
  tickLock();
}
function title(name, facts) {
  return el('div', { class: 'title' }, el('a', { class: 'back', href: '#/' }, '← All locks'), el('h1', {}, name), el('div', { class: 'facts' }, ...facts));
}
function tickLock() { for (const tick of lock.ticks) tick(); }
function ticking(one, text) { const tick = () => say(one, text()); tick(); lock.ticks.push(tick); return one; }
function who(one) {
  return [el('span', { class: 'name' }, visible(one.client ? one.client.program : one.id)),
          el('span', { class: 'sub wide' }, one.client ? visible(one.client.user + '@' + one.client.host + ' · pid ' + one.client.pid) : one.foreign ? 'another program' : 'no card: the process is gone')];
}
function holdersCard(d) {
  const row = state.rows.get(view.key);
  const cards = d.holders.map(one => {
    const [name, host] = who(one);
    const text = el('span', { class: 'lease-text' });
    const bar = el('span', { class: 'bar' }, el('i'));
    const until = one.lease_left_ms === null ? undefined : d.now + one.lease_left_ms;
    const lease = row && row.holder && row.holder.id === one.id ? row.lease : Math.max(30000, one.lease_left_ms);
    lock.ticks.push(() => showLease(text, bar, until, lease, true));
    const since = one.held_ms === null ? null : ticking(el('span', { class: 'num' }), () => 'for ' + span(now() - (d.now - one.held_ms)));
    return el('div', { class: 'party' }, name, since || el('span'), host, one.note ? el('span', { class: 'sub wide' }, visible(one.note)) : null,
      el('div', { class: 'wide' }, el('span', { class: 'sub-inline' }, 'lease left '), text, bar),
      el('span', { class: 'sub mono' }, one.token ? 'token ' + one.token : 'no token'),
      state.about?.release ? el('button', { class: 'danger', type: 'button', 'data-focus': 'release ' + one.id, onclick: () => askRelease(d, one) }, 'Release …')
        : one.mode === 'exclusive' ? el('span') : el('span', { class: 'pill' }, one.permits ? plural(one.permits, 'permit') : one.mode));
  });
  const more = d.holders_total - d.holders.length;
  return el('div', { class: 'card' }, el('h2', {}, d.holders_total > 1 ? d.holders_total + ' holders' : 'Holder'),
    ...(cards.length ? cards : [el('p', { class: 'muted' }, 'Nobody holds it.')]), more > 0 ? el('p', { class: 'muted' }, more + ' more') : null);
}
function queueCard(d) {
  const rows = d.waiters.map((one, i) => {
    const [name, host] = who(one);
    name.prepend(el('span', { class: 'place' }, String(i + 1)));
    return el('div', { class: 'party' }, name, ticking(el('span', { class: 'num' }), () => 'for ' + span(now() - (d.now - one.waited_ms))), host,
      one.silent ? el('span', { class: 'pill danger' }, 'silent: will be passed over') : one.permits ? el('span', { class: 'pill' }, 'wants ' + plural(one.permits, 'permit')) : one.wants !== 'write' ? el('span', { class: 'pill' }, 'wants to ' + one.wants) : null);
  });
  const more = d.waiters_total - d.waiters.length;
  return el('div', { class: 'card' }, el('h2', {}, 'Queue', el('span', { class: 'muted' }, d.waiters_total ? plural(d.waiters_total, 'waiter') + ', in the order in which they are served' : '')),
    ...(rows.length ? rows : [el('p', { class: 'muted' }, 'Nobody waits.')]), more > 0 ? el('p', { class: 'muted' }, more + ' more') : null);
}
const ranges = [[60, '1 min'], [300, '5 min'], [900, '15 min'], [3600, '1 h']];
function timelineCard(d) {
  const box = el('div');
  const buttons = ranges.map(([seconds, text]) => el('button', { type: 'button', 'data-focus': 'range ' + seconds, 'aria-pressed': String(view.range === seconds), onclick: () => { view.range = seconds; renderLock(); } }, text));
  const draw = () => box.replaceChildren(timeline(d, Math.max(300, box.clientWidth || 900)));
  lock.ticks.push(draw);
  const unseen = d.history.unseen ? ' · ' + plural(d.history.unseen, 'time') + ' it was held too shortly to be seen' : '';
  return el('div', { class: 'card' }, el('h2', {}, 'Hand-overs', el('span', { class: 'muted' }, plural(d.history.grants, 'grant') + ' seen' + unseen), el('span', { class: 'ranges', role: 'group', 'aria-label': 'Time shown' }, ...buttons)), box,
    el('p', { class: 'legend' }, el('span', {}, el('i'), 'held, a colour for each holder'), el('span', { class: 'wait' }, el('i'), 'waited'), el('span', { class: 'gave-up' }, el('i'), 'gave up'), el('span', { class: 'expired' }, el('i'), 'lease ran out')));
}
function timeline(d, width) {
  const end = now();
  const begin = end - view.range * 1000;
  const hue = hues(d.history.holds);
  const x = t => Math.max(0, Math.min(width, (t - begin) / (end - begin) * width));
  const holds = d.history.holds.map(one => ({ ...one, until: one.until ?? end, open: one.until === null })).filter(one => one.until >= begin);
  const waits = d.history.waits.map(one => ({ ...one, kind: one.acquired ? '' : ' gave-up' }))
    .concat(d.waiters.map(one => ({ who: one.client ? one.client.program + ' ' + one.client.user + '@' + one.client.host : one.id, since: d.now - one.waited_ms, until: end, kind: '', open: true })))
    .filter(one => one.until >= begin).sort((a, b) => a.since - b.since);
  // Readers overlap, and so do waiters: each takes the first lane that is free.
  const lanes = (items, most) => { const ends = []; for (const one of items) { let i = ends.findIndex(t => t <= one.since); if (i < 0) i = ends.length < most ? ends.length : most - 1; ends[i] = Math.max(ends[i] || 0, one.until); one.lane = i; } return Math.max(1, ends.length); };
  const heldLanes = lanes(holds, 6);
  const waitLanes = lanes(waits, 10);
  const heldHeight = heldLanes > 1 ? 18 : 30;
  const waitTop = 20 + heldLanes * (heldHeight + 3) + 20;
  const height = waitTop + waitLanes * 10 + 22;
  const picture = svg('svg', { class: 'timeline', viewBox: '0 0 ' + width + ' ' + height, height, role: 'img', 'aria-label': plural(holds.length, 'hold') + ' and ' + plural(waits.length, 'wait') + ' in this time' });
  const text = (px, py, words, more = {}) => { const t = svg('text', { x: px, y: py, ...more }); t.textContent = words; return t; };
  const block = (one, y, h, kind, words) => {
    const from = x(one.since);
    const r = svg('rect', { x: from, y, width: Math.max(2, x(one.until) - from), height: h, rx: Math.min(4, h / 2), class: kind });
    const tip = svg('title');
    tip.textContent = words;
    r.append(tip);
    picture.append(r);
    return Math.max(2, x(one.until) - from);
  };
  picture.append(text(0, 12, 'held'), text(0, waitTop - 7, 'waiting'));
  for (let i = 0; i <= 6; ++i) {
    const at = width * i / 6;
    picture.append(svg('line', { x1: at, x2: at, y1: 18, y2: height - 16, class: 'grid' }),
      text(Math.min(at, width), height - 3, i === 6 ? 'now' : '−' + span((6 - i) / 6 * view.range * 1000).trim(), { 'text-anchor': i === 0 ? 'start' : i === 6 ? 'end' : 'middle' }));
  }
  for (const one of holds) {
    const y = 20 + one.lane * (heldHeight + 3);
    const wide = block(one, y, heldHeight, hue(one.id), visible(one.who) + '\n' + (one.open ? 'holds it for ' : 'held it for ') + span(one.until - one.since) + (one.waited_ms === null ? '' : ', waited ' + span(one.waited_ms)) + (one.expired ? ', lease ran out' : '') + '\nfrom ' + clock(one.since) + (one.open ? '' : ' to ' + clock(one.until)) + (one.token ? '\ntoken ' + one.token : ''));
    if (one.expired) picture.append(svg('line', { x1: x(one.until), x2: x(one.until), y1: y, y2: y + heldHeight, class: 'expired' }));
    const words = visible(one.who);
    const fits = Math.floor((wide - 14) / 6.6);
    if (fits > 5) picture.append(text(x(one.since) + 7, y + heldHeight / 2 + 4, words.length > fits ? words.slice(0, fits - 1) + '…' : words, { class: 'label' }));
  }
  for (const one of waits) block(one, waitTop + one.lane * 10, 7, 'waiter' + one.kind, visible(one.who) + '\n' + (one.open ? 'waits for ' : one.acquired ? 'waited ' : 'gave up after ') + span(one.until - one.since));
  return picture;
}
function histogramCard(h) {
  const { bounds_ms: bounds, acquired, gave_up: gaveUp } = h.waiting;
  const most = Math.max(1, ...acquired.map((n, i) => n + gaveUp[i]));
  const total = acquired.reduce((a, b) => a + b, 0);
  const label = i => i === 0 ? 'at once' : i < bounds.length ? '≤ ' + span(bounds[i]).trim() : 'longer';
  const bars = acquired.map((n, i) => {
    const part = count => { const bar = el('i'); bar.style.height = (72 * count / most).toFixed(1) + '%'; return bar; };
    const stack = el('div', { class: 'stack' }, el('b', {}, n + gaveUp[i] ? String(n + gaveUp[i]) : ''));
    if (gaveUp[i]) { const bar = part(gaveUp[i]); bar.className = 'gave-up'; stack.append(bar); }
    if (n) stack.append(part(n));
    return el('div', { title: plural(n, 'acquisition') + ', ' + gaveUp[i] + ' gave up' }, stack, label(i));
  });
  return el('div', { class: 'card' }, el('h2', {}, 'Waiting times', el('span', { class: 'muted' }, plural(total, 'acquisition') + ', ' + gaveUp.reduce((a, b) => a + b, 0) + ' gave up')), el('div', { class: 'histogram' }, ...bars));
}
function handoversCard(h) {
  const rows = [...h.holds].reverse().slice(0, 12).map(one => el('tr', {},
    el('td', { class: 'who' }, el('span', { class: 'name' }, visible(one.who)), el('span', { class: 'sub' }, clock(one.since))),
    el('td', { class: 'num' }, one.until === null ? ticking(el('span'), () => span(now() - one.since)) : span(one.until - one.since)),
    el('td', { class: 'num' }, one.waited_ms === null ? '–' : span(one.waited_ms)),
    el('td', { class: 'later' }, one.until === null ? el('span', { class: 'pill held' }, 'holds it') : one.expired ? el('span', { class: 'pill danger' }, 'lease ran out') : el('span', { class: 'pill' }, 'released'))));
  return el('div', { class: 'card' }, el('h2', {}, 'Latest holders'), rows.length ? el('table', { class: 'handovers' }, el('thead', {}, el('tr', {}, el('th', { class: 'who' }, 'Who'), el('th', { class: 'num' }, 'Held'), el('th', { class: 'num' }, 'Waited'), el('th', { class: 'later' }, 'Then'))), el('tbody', {}, ...rows)) : el('p', { class: 'muted' }, 'Nothing has happened since holdfast web was started.'));
}

// ---- releasing
function askRelease(d, holder) {
  const dialog = $('confirm');
  const input = $('confirm-token').firstElementChild;
  $('confirm-token').hidden = Boolean(store.get('token'));
  say($('confirm-text'), '“' + visible(d.name) + '”, held by ' + visible(holder.client ? holder.client.user + '@' + holder.client.host + ' ' + holder.client.program + '[' + holder.client.pid + ']' : holder.id));
  dialog.returnValue = '';
  dialog.onclose = () => {
    if (input.value) store.set(() => sessionStorage, 'token', input.value.trim());
    input.value = '';
    if (dialog.returnValue === 'yes') release(holder.id);
  };
  dialog.showModal();
}
async function release(holder) {
  try {
    const answer = await fetch('release', { method: 'POST', headers: { ...authorization(), 'Content-Type': 'application/json' }, body: JSON.stringify({ key: view.key, holder }) });
    if (answer.status === 401) store.set(() => sessionStorage, 'token', '');
    notify(await answer.text());
  } catch { notify('holdfast web does not answer.'); }
}

// ---- health
function renderBadge() {
  const servers = (state.health && state.health.servers) || [];
  const parts = state.health && state.health.together ? [...servers, state.health.together] : servers;
  const dangers = parts.reduce((sum, one) => sum + one.dangers, 0) + (state.health && state.health.error ? 1 : 0);
  const warnings = parts.reduce((sum, one) => sum + one.warnings, 0);
  $('health-badge').hidden = !dangers && !warnings;
  $('health-badge').className = 'count' + (dangers ? ' danger' : '');
  say($('health-badge'), String(dangers || warnings));
}
function check(one) {
  const kind = { ok: 'held', warning: 'wait', danger: 'danger' }[one.severity] || '';
  return el('div', { class: 'check' }, el('span', { class: 'pill ' + kind }, one.severity), el('b', {}, one.check), el('span', { class: 'what' }, visible(one.finding)),
    one.severity === 'ok' ? null : el('p', {}, visible(one.meaning)), one.severity === 'ok' || !one.fix ? null : el('p', {}, el('b', {}, 'Fix: '), visible(one.fix)));
}
function healthCard(name, found) {
  const bad = found.checks.filter(one => one.severity !== 'ok').sort((a, b) => (a.severity === 'danger' ? 0 : 1) - (b.severity === 'danger' ? 0 : 1));
  const good = found.checks.filter(one => one.severity === 'ok');
  const pill = found.dangers ? el('span', { class: 'pill danger' }, plural(found.dangers, 'danger')) : found.warnings ? el('span', { class: 'pill wait' }, plural(found.warnings, 'warning')) : el('span', { class: 'pill held' }, 'well');
  return el('div', { class: 'card' }, el('h2', {}, el('span', { class: 'mono' }, visible(name)), pill), ...bad.map(check),
    good.length ? el('details', bad.length ? {} : { open: true }, el('summary', {}, plural(good.length, 'check') + ' without a finding'), ...good.map(check)) : null);
}
function renderHealth() {
  if (renderHealth.shown === state.health && $('page-health').firstElementChild) return;
  renderHealth.shown = state.health;
  const found = state.health;
  const head = el('div', { class: 'title' }, el('h1', {}, 'Health'), el('div', { class: 'facts' }, found ? 'What holdfast doctor finds, looked at once a minute, last at ' + clock(found.at) : ''));
  if (!found) return $('page-health').replaceChildren(head, el('p', { class: 'empty' }, 'Examining the servers …'));
  if (found.error) return $('page-health').replaceChildren(head, el('div', { class: 'card' }, el('span', { class: 'pill danger' }, 'danger'), ' ', visible(found.error)));
  $('page-health').replaceChildren(head, ...found.servers.map(one => healthCard(one.server, one)), ...(found.together ? [healthCard('all servers together', found.together)] : []));
}

// ---- where we are, keys, theme
function route() {
  const found = /^#\/lock\/([A-Za-z0-9_.:~-]+)$/.exec(location.hash);
  const before = view.page + view.key;
  view.page = found ? 'lock' : location.hash === '#/health' ? 'health' : 'list';
  if (found && found[1] !== view.key) Object.assign(view, { key: found[1], details: null, missing: false });
  if (before !== view.page + view.key) window.scrollTo(0, 0);
  if (view.page === 'lock') renderLock();
  render(true);
}
function move(step) {
  const links = table.order.map(key => table.rows.get(key).link);
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.max(0, Math.min(links.length - 1, at + step))];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}
function setFilter(text) { $('filter').value = text; view.filter = text.toLowerCase(); view.most = 250; renderList(); }
function setSort(sort) { view.sort = $('sort').value = sort; renderList(); }
const dark = matchMedia('(prefers-color-scheme: dark)');
function setTheme(theme) {
  store.set(() => localStorage, 'theme', theme);
  document.documentElement.classList.toggle('dark', theme === 'dark' || (theme !== 'light' && dark.matches));
  $('theme').title = 'Theme: ' + (theme || 'as the system') + ' (t)';
}
const nextTheme = () => { const themes = ['', 'light', 'dark']; setTheme(themes[(themes.indexOf(store.get('theme') || '') + 1) % 3]); };
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  if (event.target === $('filter')) {
    if (event.key === 'Escape') { setFilter(''); $('filter').blur(); } else if (event.key === 'Enter' || event.key === 'ArrowDown') { event.preventDefault(); move(1); }
    return;
  }
  if (event.target instanceof HTMLSelectElement) return;
  const keys = {
    '/': () => { location.hash = '#/'; route(); $('filter').focus(); $('filter').select(); }, '?': () => $('help').showModal(), t: nextTheme,
    h: () => { location.hash = '#/health'; }, l: () => { location.hash = '#/'; },
    Escape: () => { if (view.page !== 'list') location.hash = '#/'; else setFilter(''); },
  };
  const inList = { j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), s: () => setSort(sorts[(sorts.indexOf(view.sort) + 1) % sorts.length]) };
  const act = keys[event.key] || (view.page === 'list' && inList[event.key]);
  if (act) { event.preventDefault(); act(); }
});
$('filter').addEventListener('input', () => setFilter($('filter').value));
$('sort').addEventListener('change', () => setSort($('sort').value));
$('theme').addEventListener('click', nextTheme);
$('help-button').addEventListener('click', () => $('help').showModal());
$('more').lastElementChild.addEventListener('click', () => { view.most += 250; renderList(); });
dark.addEventListener('change', () => setTheme(store.get('theme') || ''));
window.addEventListener('hashchange', route);
takeToken();
setTheme(store.get('theme') || '');
route();
listen();
setInterval(() => { if (!document.hidden) { addToTrend(); render(); } }, 1000);
setInterval(() => { if (!document.hidden && view.page === 'lock') refreshDetails(); }, 5000);
