'use strict';
// Draws the charts of a Pitot report. What a chart shows is in the data block;
// this script knows axes and marks, computes no figure of its own, and asks no
// network for anything.
(() => {
  const charts = JSON.parse(document.getElementById('data').textContent);
  const say = document.getElementById('say');
  const root = document.documentElement;
  const groups = new Map(); // name: charts that zoom together
  let drawn = 0;
  let failed = 0;

  // Small things ---------------------------------------------------------

  const svgNS = 'http://www.w3.org/2000/svg';
  function svg(tag, attributes, parent, text) {
    const e = document.createElementNS(svgNS, tag);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    if (parent) parent.append(e);
    return e;
  }
  function html(tag, attributes, parent, text) {
    const e = document.createElement(tag);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    if (parent) parent.append(e);
    return e;
  }
  const known = v => v !== null && v !== undefined && Number.isFinite(v);
  const px = v => Math.round(v * 10) / 10;
  const few = (s, i) => s.few?.includes(i); // it rests on few samples

  // number writes a value with about three significant digits, as the tables do.
  function number(v) {
    if (!known(v)) return '–';
    const a = Math.abs(v);
    if (a === 0) return '0';
    if (a >= 999.5) return Math.round(v).toLocaleString('en');
    return String(Number(v.toPrecision(a >= 100 ? 4 : 3)));
  }
  function value(v, axis) {
    if (axis.scale === 'odds') return String(Number((100 * v).toPrecision(v > 0.99 ? 5 : 3))) + ' %';
    return number(v) + (axis.unit ? ' ' + axis.unit : '');
  }
  const named = axis => axis.name + (axis.unit ? ', ' + axis.unit : '');

  // Scales ---------------------------------------------------------------

  // Shares are drawn by their odds, so that the tail has room: from 99 % to 99.9 %
  // is as far as from 90 % to 99 %.
  const odds = p => Math.log(Math.max(p, 1e-9) / Math.max(1 - p, 1e-9));
  function scale(axis, values, from, to, narrowed) {
    const f = axis.scale === 'log' ? Math.log : axis.scale === 'odds' ? odds : axis.scale === 'change' ? v => Math.log1p(Math.max(v, -99.9) / 100) : v => v;
    let lo = Infinity, hi = -Infinity;
    for (const v of values) {
      if (!known(v) || (axis.scale === 'log' && v <= 0)) continue;
      if (axis.scale === 'odds' && v >= 1) continue;
      if (v < lo) lo = v;
      if (v > hi) hi = v;
    }
    const least = lo;
    if (lo > hi) [lo, hi] = axis.scale === 'log' ? [1, 10] : axis.scale === 'odds' ? [0, 0.8] : [0, 1];
    if (axis.scale === 'odds') {
      lo = 0.01;
      hi = Math.max(1 - (1 - hi) / 2, 0.9);
    } else if (axis.scale === 'log') {
      if (!narrowed && hi / lo < 1.5) [lo, hi] = [lo / 1.3, hi * 1.3];
      else if (!narrowed) [lo, hi] = [lo / 1.06, hi * 1.06];
      if (!narrowed && known(axis.max)) hi = Math.min(hi, axis.max);
    } else if (axis.scale === 'change' || axis.scale === 'points') {
      if (known(axis.min)) lo = axis.min;
      if (known(axis.max)) hi = axis.max;
    } else {
      if (lo === hi) [lo, hi] = [lo - (Math.abs(lo) || 1) / 2, hi + (Math.abs(hi) || 1) / 2];
      else if (!narrowed) hi += (hi - lo) * 0.06;
      if (known(axis.min)) lo = Math.min(axis.min, least);
      if (known(axis.max)) hi = axis.max;
    }
    if (narrowed) [lo, hi] = narrowed;
    const a = f(lo), b = f(hi);
    const s = v => from + (f(v) - a) / (b - a || 1) * (to - from);
    s.lo = lo;
    s.hi = hi;
    s.axis = axis;
    s.from = from;
    s.to = to;
    s.invert = p => {
      const t = a + (p - from) / (to - from) * (b - a);
      return axis.scale === 'change' ? 100 * Math.expm1(t) : axis.scale === 'log' ? Math.exp(t) : axis.scale === 'odds' ? 1 / (1 + Math.exp(-t)) : t;
    };
    return s;
  }
  function ticks(s, room) {
    if (s.axis.scale === 'odds') return [.01, .1, .5, .9, .99, .999, .9999, .99999, .999999].filter(v => v <= s.hi);
    if (s.axis.scale === 'change') { // outward from none, as far apart as their texts need
      const list = [0], apart = 46;
      const grow = (steps, in_) => {
        let last = 0;
        for (const v of steps) {
          if (!in_(v) || Math.abs(s(v) - s(last)) < apart) continue;
          list.push(v);
          last = v;
        }
      };
      grow([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000], v => v <= s.hi);
      grow([-1, -2, -5, -10, -20, -30, -50, -70, -80, -90, -95, -98], v => v >= s.lo);
      return list.sort((a, b) => a - b);
    }
    if (s.axis.scale === 'log') {
      const at = steps => {
        const list = [];
        for (let e = Math.floor(Math.log10(s.lo)); e <= Math.ceil(Math.log10(s.hi)); e++) {
          for (const k of steps) list.push(Number((k * 10 ** e).toPrecision(6)));
        }
        return list.filter(v => v >= s.lo * 0.999 && v <= s.hi * 1.001);
      };
      let list = at([1, 2, 5]);
      const close = list.length < 4 ? at([1, 1.5, 2, 3, 5, 7]) : []; // where an axis would be bare
      if (close.length > list.length && close.length <= room) list = close;
      if (list.length > room) list = list.filter(v => /^0?\.?0*1/.test(String(v)));
      const every = Math.ceil(list.length / Math.max(room, 2));
      list = list.filter((_, i) => i % every === 0);
      if (list.length >= 2) return list;
    }
    const raw = (s.hi - s.lo) / Math.max(room, 2);
    const unit = 10 ** Math.floor(Math.log10(raw || 1));
    const step = [1, 2, 5, 10].find(k => k * unit >= raw) * unit;
    const list = [];
    for (let v = Math.ceil(s.lo / step - 1e-9) * step; v <= s.hi + step * 1e-6; v += step) list.push(Number(v.toPrecision(12)));
    return list;
  }
  const signed = axis => axis.scale === 'change' || axis.scale === 'points';
  const tickText = (v, axis) => axis.scale === 'odds' ? Number((100 * v).toPrecision(7)) + ' %'
    : signed(axis) ? (v > 0 ? '+' : '') + number(v) + (axis.scale === 'change' ? ' %' : '') : number(v);

  // Drawing --------------------------------------------------------------

  // glyph is the path of a dot: round, or of a shape for what has no colour of its own.
  const glyph = (shape, a, b) => shape === 1 ? `M${a - 3} ${b - 3}l6 6m0 -6l-6 6` : shape ? `M${a - 3.5} ${b}l3.5 -3.5l3.5 3.5l-3.5 3.5z` : `M${a} ${b}h0`;

  class Chart {
    constructor(plot, spec) {
      this.plot = plot;
      this.spec = spec;
      this.zoom = null;
      this.zooms = spec.kind !== 'heat' && spec.kind !== 'rows';
      if (spec.kind === 'traces') this.decode();
      if (spec.shown) this.zoom = spec.shown;
      if (spec.group) {
        if (!groups.has(spec.group)) groups.set(spec.group, []);
        groups.get(spec.group).push(this);
      }
      this.tip = html('div', {class: 'tip', hidden: ''}, plot);
      this.tools();
    }

    // decode reads when the chunks of the traces came, milliseconds after due.
    decode() {
      const bytes = atob(this.spec.traces.data);
      let at = 0;
      for (const r of this.spec.traces.list) {
        r.chunks = [];
        let t = 0;
        for (let i = 0; i < r.n; i++) {
          let v = 0, shift = 1, b;
          do {
            b = bytes.charCodeAt(at++);
            v += (b & 127) * shift;
            shift *= 128;
          } while (b > 127);
          t += v;
          r.chunks.push(t / 10);
        }
      }
    }

    // draw fills the place there is, or one of another width.
    draw(given) {
      const width = given || Math.max(this.plot.clientWidth, 240);
      this.width = width;
      const small = width < 480;
      const spec = this.spec;
      const series = (spec.series || []).filter(s => s.kind !== 'band' && !s.aside);
      const inLine = series.length > 1 && !small && !spec.low && series.every(s => s.kind === 'line' || s.kind === 'step');
      const longest = Math.max(0, ...series.map(s => s.name.length));
      this.direct = inLine && longest < 22;
      this.legend = series.length > 1 && !this.direct;
      this.box = {l: spec.y.scale === 'odds' ? 72 : 54, r: this.direct ? Math.min(longest * 7.8 + 16, 190) : 14, t: spec.marks?.some(m => m.axis === 'x' && m.tone) ? 36 : 24, b: 36};
      if (spec.kind === 'rows') { // name, plot and text side by side, or the plot below them
        const alike = Object.values(charts).filter(c => c === spec || c.kind === 'rows' && spec.group && c.group === spec.group); // in line with these
        const widest = f => Math.max(0, ...alike.flatMap(c => c.rows).map(r => f(r).length));
        this.stacked = small;
        this.tall = small ? 40 : 25;
        this.texts = Math.max(widest(r => r.text) * 7.2, 40);
        this.box = small ? {l: 10, r: 10, t: 8, b: 36}
          : {l: Math.min(Math.max(widest(r => r.name) * 7.6 + 14, 60), 250), r: this.texts + 24 + widest(r => r.word || '') * 8, t: 8, b: 36};
        if (spec.marks) this.box.t = 24;
      }
      this.height = spec.kind === 'rows' ? spec.rows.length * this.tall + this.box.t + this.box.b + 2 : spec.kind === 'traces' ? Math.min(560, spec.traces.list.length * (small ? 2 : 2.6) + 90)
        : (spec.low ? 150 : small ? 230 : 280);
      const box = this.box;
      if (this.svg) this.svg.remove();
      this.svg = svg('svg', {
        class: 'c', viewBox: `0 0 ${width} ${this.height}`, width, height: this.height, tabindex: 0, role: 'img',
        'aria-label': this.describe(),
      });
      this.plot.prepend(this.svg);
      const xs = [], ys = [];
      if (spec.kind === 'heat') {
        const h = spec.heat;
        xs.push(0, h.nx * h.dx);
        ys.push(0, h.ny * h.dy);
      } else if (spec.kind === 'traces') {
        for (const r of spec.traces.list) xs.push(r.done ?? 0, r.chunks.at(-1) ?? 0);
        xs.push(0);
        ys.push(0, spec.traces.list.length);
      } else if (spec.kind === 'rows') {
        for (const r of spec.rows) xs.push(r.at, r.lo, r.hi, ...(r.dots || []), ...(r.band || []));
        ys.push(0, 1);
      } else {
        for (const s of spec.series) {
          xs.push(...s.px);
          const seen = (_, i) => !this.zoom || s.px[i] >= this.zoom[0] && s.px[i] <= this.zoom[1];
          if (s.kind !== 'band') ys.push(...s.py.filter(seen));
          if (s.kind === 'band') xs.push(...s.lo, ...s.hi);
          else if (s.lo) ys.push(...s.lo.filter(seen), ...s.hi.filter(seen));
        }
        for (const m of spec.marks || []) if (m.axis === 'y' && spec.y.scale === 'log') ys.push(m.at);
        for (const m of spec.marks || []) if (m.axis === 'x' && spec.x.scale === 'log' && spec.y.scale === 'odds') xs.push(m.at);
      }
      const exact = spec.kind ? [0, spec.kind === 'traces' ? spec.traces.list.length : ys[1]] : null;
      this.x = scale(spec.x, xs, box.l, width - box.r, this.zoom || (spec.kind === 'heat' ? [0, xs[1]] : null));
      this.y = scale(spec.y, ys, this.height - box.b, box.t, exact);
      if (spec.kind === 'traces') this.y = scale(spec.y, ys, box.t, this.height - box.b, exact);
      this.clip = 'clip-' + this.plot.dataset.chart;
      const over = spec.kind && spec.kind !== 'rows' ? 0 : 6; // dots on the edge are whole
      svg('rect', {x: box.l - over, y: box.t - over, width: width - box.l - box.r + 2 * over, height: this.height - box.t - box.b + 2 * over}, svg('clipPath', {id: this.clip}, svg('defs', {}, this.svg)));
      this.axes();
      this.marks();
      const body = svg('g', {'clip-path': `url(#${this.clip})`}, this.svg);
      if (spec.kind === 'heat') this.heat(body);
      else if (spec.kind === 'traces') this.traces(body);
      else if (spec.kind === 'rows') this.forest(body);
      else for (const s of [...spec.series.filter(s => s.aside), ...spec.series.filter(s => !s.aside)]) this.series(s, body);
      if (this.direct) this.labels(series);
      if (spec.labels) this.labelValues(series);
      this.cursor = svg('g', {class: 'cursor'}, this.svg);
      this.listen();
      if (this.key) this.key.remove();
      if (this.legend) {
        this.key = html('p', {class: 'key'});
        for (const s of series) {
          const item = html('span', {class: 't' + s.tone}, this.key);
          if (s.kind === 'line' || s.kind === 'step') this.sample(s, item);
          else if (s.shape) svg('path', {d: glyph(s.shape, 5, 5), class: 'dots drawn t' + s.tone}, svg('svg', {class: 'c stroke', width: 10, height: 10, viewBox: '0 0 10 10', 'aria-hidden': 'true'}, item));
          else html('i', {}, item);
          item.append(s.name);
        }
        this.plot.before(this.key);
      }
    }

    // sample is the line of a series, in the key.
    sample(s, into) {
      const e = svg('svg', {class: 'c stroke', width: 26, height: 10, viewBox: '0 0 26 10', 'aria-hidden': 'true'}, into);
      svg('path', {d: 'M1 5H25', class: 'line t' + s.tone + (s.dash ? ' dash' + s.dash : '')}, e);
    }

    describe() {
      const s = this.spec;
      if (s.kind === 'rows') return `${s.title}. ${s.rows.map(r => [r.name, r.text, r.word].filter(Boolean).join(' ')).join('; ')}`;
      const names = (s.series || []).filter(x => x.kind !== 'band' && !x.aside).map(x => x.name).join(', ');
      return `${s.title}. ${named(s.y)} against ${named(s.x)}${names ? ': ' + names : ''}. Arrow keys go from value to value; the table has them all.`;
    }

    axes() {
      const {svg: into, x, y, box, width, height, spec} = this;
      const g = svg('g', {class: 'axes'}, into);
      if (spec.kind !== 'traces' && spec.kind !== 'rows') {
        for (const v of ticks(y, spec.low ? 3 : 6)) {
          const p = px(y(v));
          if (p < box.t - 1) continue;
          svg('path', {d: `M${box.l} ${p}H${width - box.r}`, class: 'grid'}, g);
          svg('text', {x: box.l - 8, y: p + 4, 'text-anchor': 'end'}, g, tickText(v, spec.y));
        }
      }
      let taken = -Infinity; // up to where the axis has text
      for (const v of ticks(x, Math.floor((width - box.l - box.r) / 62))) {
        const p = px(x(v)), text = tickText(v, spec.x), half = text.length * 3.4;
        const at = Math.min(Math.max(p, half + 1), width - half - 1); // none is cut off
        // In a narrow chart a line stops at the words above each row.
        const d = this.stacked ? spec.rows.map((_, i) => `M${p} ${box.t + i * this.tall + 18}V${box.t + (i + 1) * this.tall}`).join('') : `M${p} ${box.t}V${height - box.b}`;
        if (spec.kind === 'rows') svg('path', {d, class: v === 0 && signed(spec.x) ? 'tick' : 'grid'}, g);
        svg('path', {d: `M${p} ${height - box.b}v4`, class: 'tick'}, g);
        if (at - half < taken + 4) continue; // nor runs into the one before
        taken = at + half;
        svg('text', {x: px(at), y: height - box.b + 17, 'text-anchor': 'middle'}, g, text);
      }
      svg('path', {d: `M${box.l} ${height - box.b}H${width - box.r}`, class: 'base'}, g);
      if (spec.kind !== 'rows') svg('text', {x: 4, y: 12, class: 'name'}, g, spec.kind === 'traces' ? 'Requests, the slowest first' : spec.y.name === spec.title && spec.y.unit ? spec.y.unit : named(spec.y));
      svg('text', {x: width - box.r, y: height - 3, 'text-anchor': 'end', class: 'name'}, g, named(spec.x));
    }

    marks() {
      const {svg: into, x, y, box, width, height} = this;
      const g = svg('g', {}, into);
      const rows = []; // right ends of the labels in each row
      const left = box.l, right = width - box.r;
      for (const m of this.spec.marks || []) {
        if (m.axis === 'y') {
          const p = px(y(m.at));
          if (!(p >= box.t && p <= height - box.b)) continue;
          svg('path', {d: `M${left} ${p}H${right}`, class: 'limit m' + m.tone}, g);
          svg('text', {x: left + 6, y: p - 5, class: 'mark m' + m.tone}, g, m.name);
          continue;
        }
        const a = x(m.at), b = m.open ? right : m.to !== undefined ? x(m.to) : a;
        if (b < left || a > right) continue;
        const from = Math.max(a, left), to = Math.min(b, right);
        if (m.open || m.to !== undefined) svg('rect', {x: px(from), y: box.t, width: px(Math.max(to - from, 1)), height: height - box.t - box.b, class: 'region m' + m.tone}, g);
        else svg('path', {d: `M${px(a)} ${box.t}V${height - box.b}`, class: 'limit m' + m.tone}, g);
        const room = m.name.length * 6.6;
        const region = m.open || m.to !== undefined;
        if (region && m.tone === 0 && to - from < room + 6) continue; // the note tells of the shade
        // Right of where it begins, or left of it: where there is room, and left
        // where a distribution passes to the right of a limit.
        const sides = [[from + 4, 'start', from + 4], [from - 4, 'end', from - 4 - room]];
        if (!region && this.spec.y.scale === 'odds') sides.reverse();
        let row = 0, side = null;
        for (; !side; row++) {
          rows[row] = rows[row] || [];
          side = sides.find(([, , begin]) => begin >= left - 40 && begin + room <= right + box.r && rows[row].every(([p, q]) => begin > q || begin + room < p));
          if (row > 8) side = sides[0];
        }
        row--;
        const [at, anchor, begin] = side;
        rows[row].push([begin, begin + room]);
        svg('text', {x: px(at), y: m.tone ? box.t - 6 + (row ? 18 + 13 * (row - 1) : 0) : box.t + 12, 'text-anchor': anchor, class: 'mark m' + m.tone}, g, m.name);
      }
    }

    series(s, g) {
      const {x, y} = this;
      const tone = 't' + s.tone;
      const n = s.px.length;
      const bottom = this.height - this.box.b;
      const has = i => known(s.px[i]) && known(s.py[i]) && !(this.spec.y.scale === 'log' && s.py[i] <= 0) && !(this.spec.x.scale === 'log' && s.px[i] <= 0);
      let d = '';
      if (s.kind === 'band') {
        let back = '';
        for (let i = 0; i < n; i++) {
          d += (i ? 'L' : 'M') + px(x(s.lo[i])) + ' ' + px(y(s.py[i]));
          back = 'L' + px(x(s.hi[i])) + ' ' + px(y(s.py[i])) + back;
        }
        let bars = '';
        for (let i = 0; i < n; i++) bars += `M${px(x(s.lo[i]))} ${px(y(s.py[i]))}H${px(x(s.hi[i]))}`;
        svg('path', {d: d + back + 'Z', class: 'band ' + tone}, g);
        svg('path', {d: bars, class: 'interval ' + tone}, g);
        return;
      }
      if (s.kind === 'bars') {
        for (let i = 0; i + 1 < n; i++) {
          if (has(i) && s.py[i] > 0) d += `M${px(x(s.px[i]))} ${bottom}V${px(y(s.py[i]))}H${px(x(s.px[i + 1]))}V${bottom}`;
        }
        svg('path', {d, class: 'bars ' + tone}, g);
        return;
      }
      if (s.kind === 'dots') {
        for (let i = 0; i < n; i++) if (has(i)) d += glyph(s.shape, px(x(s.px[i])), px(y(s.py[i])));
        svg('path', {d, class: 'dots ' + tone + (s.aside ? ' aside' : n < 60 ? ' big' : '') + (s.shape ? ' drawn' : '')}, g);
        return;
      }
      let pen = false;
      for (let i = 0; i < n; i++) {
        if (!has(i)) {
          pen = false;
          continue;
        }
        const a = px(x(s.px[i])), b = px(y(s.py[i]));
        if (s.kind === 'step') {
          // A distribution rises at its value; a rate holds for its whole bin.
          const rises = this.spec.y.scale === 'odds' && i === 0 && b < bottom;
          d += pen ? `H${a}V${b}` : rises ? `M${a} ${bottom}V${b}` : `M${a} ${b}`;
          if (this.spec.y.scale !== 'odds' && i === n - 1) d += `H${px(x(known(this.spec.x.max) ? this.spec.x.max : s.px[i]))}`;
        } else d += (pen ? 'L' : 'M') + a + ' ' + b;
        pen = true;
      }
      if (s.lo) {
        let bars = '';
        for (let i = 0; i < n; i++) if (has(i) && known(s.lo[i])) bars += `M${px(x(s.px[i]))} ${px(y(s.lo[i]))}V${px(y(s.hi[i]))}`;
        svg('path', {d: bars, class: 'interval ' + tone}, g);
      }
      svg('path', {d, class: 'line ' + tone + (s.dash ? ' dash' + s.dash : '') + (s.faint ? ' faint' : '')}, g);
      if (s.kind === 'line' && n < 80 && !s.plain) {
        let dots = '';
        for (let i = 0; i < n; i++) if (has(i) && !few(s, i)) dots += `M${px(x(s.px[i]))} ${px(y(s.py[i]))}h0`;
        svg('path', {d: dots, class: 'dots big ' + tone}, g);
      }
      for (const i of s.few || []) if (has(i)) svg('circle', {cx: px(x(s.px[i])), cy: px(y(s.py[i])), r: 3.4, class: 'hollow ' + tone}, g);
    }

    labels(series) {
      const list = [];
      for (const s of series) {
        let i = s.px.length - 1;
        while (i >= 0 && !(known(s.px[i]) && known(s.py[i]) && s.px[i] <= this.x.hi)) i--;
        if (i >= 0) list.push({s, at: Math.max(this.y(s.py[i]), this.box.t) + 4});
      }
      list.sort((a, b) => a.at - b.at);
      for (let i = 1; i < list.length; i++) list[i].at = Math.max(list[i].at, list[i - 1].at + 14);
      const floor = this.height - this.box.b + 4;
      for (let i = list.length - 1; i >= 0; i--) {
        list[i].at = Math.min(list[i].at, floor - 14 * (list.length - 1 - i));
        svg('text', {x: this.width - this.box.r + 8, y: px(list[i].at), class: 'label t' + list[i].s.tone}, this.svg, list[i].s.name);
      }
    }

    // labelValues writes next to each value what it is of, where there is room.
    labelValues(series) {
      const at = series.filter(s => s.labels).flatMap(s => s.px.map((v, i) => [this.x(v), this.y(s.py[i]), s.labels[i]])).filter(([a, b]) => known(a) && known(b));
      const taken = at.map(([a, b]) => [a - 5, b - 5, a + 5, b + 5]);
      for (const [a, b, text] of at) {
        const wide = text.length * 6.4;
        const free = ([l, base]) => l > this.box.l && l + wide < this.width - this.box.r + 10 && base > 10 && base < this.height - this.box.b
          && !taken.some(t => l < t[2] && l + wide > t[0] && base - 10 < t[3] && base + 2 > t[1]);
        const spot = [[a + 8, b + 4], [a - 8 - wide, b + 4], [a - wide / 2, b - 9], [a - wide / 2, b + 18]].find(free);
        if (!spot) continue;
        taken.push([spot[0], spot[1] - 10, spot[0] + wide, spot[1] + 2]);
        svg('text', {x: px(spot[0]), y: px(spot[1]), class: 'mark'}, this.svg, text);
      }
    }

    heat(g) {
      const h = this.spec.heat;
      const top = Math.max(...h.cells);
      const steps = 8;
      const paths = Array(steps + 1).fill('');
      for (let j = 0; j < h.ny; j++) {
        for (let i = 0; i < h.nx; i++) {
          const n = h.cells[j * h.nx + i];
          if (!n) continue;
          const level = Math.max(1, Math.ceil(n / top * steps));
          const a = this.x(i * h.dx), b = this.x((i + 1) * h.dx), c = this.y(j * h.dy), e = this.y((j + 1) * h.dy);
          paths[level] += `M${px(a)} ${px(c)}H${px(b)}V${px(e)}H${px(a)}Z`;
        }
      }
      paths.forEach((d, level) => d && svg('path', {d, class: 'cell', 'fill-opacity': (0.12 + 0.88 * level / steps).toFixed(2)}, g));
    }

    traces(g) {
      const list = this.spec.traces.list;
      let wait = '', ticks = '', bad = '';
      const tall = Math.abs(this.y(1) - this.y(0));
      list.forEach((r, row) => {
        const mid = px(this.y(row + 0.5));
        const end = r.chunks.length ? r.chunks[0] : r.done ?? this.x.hi;
        wait += `M${px(this.x(0))} ${mid}H${px(this.x(Math.max(end, 0)))}`;
        if (r.ended !== 'ok') bad += `M${px(this.x(r.done ?? this.x.hi))} ${mid}h0`;
        let from = -1, to = -1; // columns of pixels that join
        for (const c of r.chunks) {
          if (c < this.x.lo || c > this.x.hi) continue;
          const p = Math.round(this.x(c) * 2) / 2;
          if (p <= to && from >= 0) {
            to = p + 1.2;
            continue;
          }
          if (from >= 0) ticks += `M${from} ${mid}H${px(to)}`;
          [from, to] = [p, p + 1.2];
        }
        if (from >= 0) ticks += `M${from} ${mid}H${px(to)}`;
      });
      const thick = Math.max(1, Math.min(tall * 0.8, 6));
      svg('path', {d: wait, class: 'wait', 'stroke-width': thick}, g);
      svg('path', {d: ticks, class: 'chunk', 'stroke-width': thick}, g);
      if (bad) svg('path', {d: bad, class: 'dots big t2'}, g);
    }

    // forest draws rows: where a value lies, how sure it is, and what it means.
    forest(g) {
      const {x, box, tall, stacked, width} = this;
      const write = (at, y, anchor, text, cls) => svg('text', {x: px(at), y: px(y), 'text-anchor': anchor, class: cls}, this.svg, text);
      this.spec.rows.forEach((r, i) => {
        const top = box.t + i * tall, mid = px(stacked ? top + 27 : top + tall / 2), from = stacked ? top + 18 : top;
        if (r.band) svg('rect', {x: px(x(r.band[0])), width: px(x(r.band[1]) - x(r.band[0])), y: px(from), height: px(top + tall - from), class: 'region'}, g);
        if (r.dots) svg('path', {d: r.dots.map(v => known(v) ? `M${px(x(v))} ${mid}h0` : '').join(''), class: 'dots aside ' + r.look}, g);
        if (known(r.lo)) {
          const a = Math.max(x(r.lo), box.l), b = Math.min(x(r.hi), width - box.r);
          let d = `M${px(a)} ${mid}H${px(b)}`;
          if (x(r.lo) < a) d += `M${px(a + 5)} ${mid - 4}L${px(a)} ${mid}L${px(a + 5)} ${mid + 4}`; // it goes on
          if (x(r.hi) > b) d += `M${px(b - 5)} ${mid - 4}L${px(b)} ${mid}L${px(b - 5)} ${mid + 4}`;
          svg('path', {d, class: 'whisker ' + r.look}, g);
        }
        svg('circle', {cx: px(x(r.at)), cy: mid, r: r.dots ? 5.5 : 4.5, class: 'pip ' + r.look}, g);
        if (stacked) {
          write(box.l, top + 12, 'start', r.name + '\u2003' + r.text, 'rowname');
          write(width - box.r, top + 12, 'end', r.word || '', 'word ' + r.look);
        } else {
          write(box.l - 10, mid + 4, 'end', r.name, 'rowname');
          write(width - box.r + 10 + this.texts, mid + 4, 'end', r.text, 'rowname');
          write(width - box.r + 20 + this.texts, mid + 4, 'start', r.word || '', 'word ' + r.look);
        }
      });
    }

    // Looking at single values -------------------------------------------

    listen() {
      const s = this.svg;
      let from = null, shade = null;
      const at = e => {
        const r = s.getBoundingClientRect();
        return [(e.clientX - r.left) / r.width * this.width, (e.clientY - r.top) / r.height * this.height];
      };
      s.addEventListener('pointermove', e => {
        const [a, b] = at(e);
        if (from !== null && this.zooms) {
          shade = shade || svg('rect', {class: 'drag', y: this.box.t, height: this.height - this.box.t - this.box.b}, s);
          shade.setAttribute('x', Math.min(a, from));
          shade.setAttribute('width', Math.abs(a - from));
        }
        this.point(a, b);
      });
      s.addEventListener('pointerdown', e => {
        if (e.pointerType === 'mouse' && e.button === 0) from = at(e)[0];
      });
      s.addEventListener('pointerup', e => {
        const a = at(e)[0];
        if (from !== null && Math.abs(a - from) > 8 && this.zooms) {
          this.narrow([this.x.invert(Math.max(Math.min(a, from), this.box.l)), this.x.invert(Math.min(Math.max(a, from), this.width - this.box.r))]);
        } else this.point(...at(e));
        from = null;
        if (shade) shade.remove();
        shade = null;
      });
      s.addEventListener('pointerleave', () => {
        from = null;
        if (shade) shade.remove();
        shade = null;
        this.hide();
      });
      s.addEventListener('dblclick', () => this.narrow(null));
      s.addEventListener('blur', () => this.hide());
      s.addEventListener('keydown', e => this.press(e));
    }

    press(e) {
      const s = (this.spec.series || []).find(x => x.kind !== 'band');
      const n = s ? s.px.length : (this.spec.rows || this.spec.traces?.list || []).length;
      const move = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -n, End: n}[e.key];
      if (e.key === 'Escape') {
        this.narrow(null);
        this.hide();
      } else if (move && n) {
        e.preventDefault();
        this.at = Math.min(Math.max((this.at ?? (move > 0 ? -1 : n)) + move, 0), n - 1);
        if (s) this.point(this.x(s.px[this.at]), known(s.py[this.at]) ? this.y(s.py[this.at]) : this.box.t);
        else if (this.spec.rows) this.point(this.x(this.spec.rows[this.at].at), this.box.t + (this.at + 0.5) * this.tall);
        else this.point(this.x(0) + 1, this.y(this.at + 0.5));
        say.textContent = [...this.tip.children].map(e => e.textContent).join('; ');
      }
    }

    // point shows what there is at a place of the chart.
    point(a, b) {
      const {spec, x, y} = this;
      this.cursor.replaceChildren();
      const lines = [];
      let title = '', where = a;
      if (spec.kind === 'heat') {
        const h = spec.heat;
        const i = Math.floor(x.invert(a) / h.dx), j = Math.floor(y.invert(b) / h.dy);
        if (i < 0 || j < 0 || i >= h.nx || j >= h.ny) return this.hide();
        title = `due at ${number(i * h.dx)} to ${number((i + 1) * h.dx)} s`;
        lines.push(['', `${number(h.cells[j * h.nx + i])} tokens after ${number(j * h.dy)} to ${number((j + 1) * h.dy)} ms`]);
      } else if (spec.kind === 'rows') {
        const r = spec.rows[Math.floor((b - this.box.t) / this.tall)];
        if (!r) return this.hide();
        title = r.name;
        for (const line of [[r.text, r.word].filter(Boolean).join(', '), ...r.say || []]) lines.push(['', line]);
        where = x(r.at);
      } else if (spec.kind === 'traces') {
        const r = spec.traces.list[Math.floor(y.invert(b))];
        if (!r) return this.hide();
        title = `request ${r.id}, due at ${number(r.due)} s`;
        lines.push(['', `sent after ${number(r.sent)} ms, first chunk ${number(r.chunks[0])} ms, done ${number(r.done)} ms`], ['', `${r.n} chunks, ${r.ended}`]);
        svg('path', {d: `M${this.box.l} ${px(b)}H${this.width - this.box.r}`, class: 'hair'}, this.cursor);
      } else {
        let best = null;
        for (const s of spec.series) {
          if (s.kind === 'band') continue;
          for (let i = 0; i < s.px.length; i++) {
            if (!known(s.px[i]) || !known(s.py[i])) continue;
            const dx = Math.abs(x(s.px[i]) - a), dy = s.kind === 'dots' || s.labels ? Math.abs(y(s.py[i]) - b) : 0;
            const near = s.aside && dx + dy < 7; // a dot behind a line is meant when it is pointed at
            const d = near ? dx + dy - 999 : dx + dy;
            if (!best || d < best.d) best = {d, s, i};
          }
        }
        if (!best || best.d > 120) return this.hide();
        const v = best.s.px[best.i];
        where = x(v);
        title = spec.x.name + ' ' + value(v, spec.x);
        for (const s of spec.series) {
          if (s.kind === 'band') continue;
          const alone = s.kind === 'dots' || s.labels;
          if (alone && s !== best.s) continue;
          let i = best.i;
          if (s !== best.s) {
            i = 0;
            for (let k = 1; k < s.px.length; k++) if (known(s.px[k]) && Math.abs(x(s.px[k]) - where) < Math.abs(x(s.px[i]) - where)) i = k;
          }
          if (!known(s.py[i])) continue;
          let text = (few(s, i) ? '~' : '') + value(s.py[i], spec.y);
          if (s.lo && known(s.lo[i])) text += ` (${number(s.lo[i])} to ${number(s.hi[i])})`;
          if (s.labels) text += ', ' + s.labels[i];
          if (few(s, i)) text += ', few samples';
          lines.push([s.name, text, s.tone]);
          svg('circle', {cx: px(x(s.px[i])), cy: px(Math.max(y(s.py[i]), this.box.t)), r: 4, class: 'spot t' + s.tone}, this.cursor);
        }
        svg('path', {d: `M${px(where)} ${this.box.t}V${this.height - this.box.b}`, class: 'hair'}, this.cursor);
      }
      this.tip.replaceChildren();
      html('b', {}, this.tip, title);
      for (const [name, text, tone] of lines) {
        const row = html('span', {class: tone ? 't' + tone : ''}, this.tip);
        if (name) html('i', {}, row);
        row.append((name ? name + ' ' : '') + text);
      }
      this.tip.hidden = false;
      const ratio = this.svg.getBoundingClientRect().width / this.width || 1;
      const w = this.tip.offsetWidth;
      let left = where * ratio + 12;
      if (left + w > this.plot.clientWidth) left = Math.max(0, where * ratio - w - 12);
      this.tip.style.left = left + 'px';
      this.tip.style.top = Math.max(0, Math.min(b * ratio - 20, this.height * ratio - this.tip.offsetHeight)) + 'px';
    }

    hide() {
      this.tip.hidden = true;
      if (this.cursor) this.cursor.replaceChildren();
    }

    // narrow shows a part of the x axis, in all charts of the group.
    narrow(range) {
      for (const c of groups.get(this.spec.group) || [this]) {
        c.zoom = range;
        c.reset.hidden = !range;
        c.draw();
      }
    }

    // Tables and files ----------------------------------------------------

    tools() {
      const bar = html('div', {class: 'tools'});
      this.plot.parentElement.querySelector('figcaption').prepend(bar);
      const button = (text, label, act) => {
        const b = html('button', {type: 'button', 'aria-label': `${label}: ${this.spec.title}`}, bar, text);
        b.addEventListener('click', () => act(b));
        return b;
      };
      const table = button('Table', 'Show the table', b => this.table(b));
      table.setAttribute('aria-expanded', 'false');
      button('CSV', 'Download as CSV', () => save(this.file('csv'), this.csv(), 'text/csv'));
      button('SVG', 'Download as SVG', () => save(this.file('svg'), this.picture(), 'image/svg+xml'));
      this.reset = button('Whole axis', 'Show the whole axis', () => this.narrow(null));
      this.reset.hidden = !this.zoom;
    }

    file(kind) { return 'pitot-' + this.plot.dataset.chart + '.' + kind; }

    rows(all) {
      const {spec} = this;
      if (spec.kind === 'heat') {
        const h = spec.heat, rows = [];
        for (let j = 0; j < h.ny; j++) for (let i = 0; i < h.nx; i++) {
          const n = h.cells[j * h.nx + i];
          if (n) rows.push([i * h.dx, j * h.dy, n]);
        }
        return [['due from, s', 'after, ms', 'tokens'], rows];
      }
      if (spec.kind === 'traces') {
        if (!all) return [['request', 'due, s', 'sent, ms', 'done, ms', 'chunks', 'ended'], spec.traces.list.map(r => [r.id, r.due, r.sent, r.done, r.n, r.ended])];
        return [['request', 'due, s', 'chunk after, ms'], spec.traces.list.flatMap(r => r.chunks.map(c => [r.id, r.due, c]))];
      }
      if (spec.kind === 'rows') {
        if (spec.rows.some(r => r.dots)) {
          return [[spec.y.name, 'of', named(spec.x)], spec.rows.flatMap(r => [[r.name, 'all', r.at], ...(r.dots || []).map((v, i) => [r.name, r.labels[i], v])])];
        }
        const head = [spec.y.name, named(spec.x), 'from', 'to', 'equivalent from', 'to', 'verdict'];
        return [head, spec.rows.map(r => [r.name, r.at, r.lo, r.hi, ...r.band, r.word])];
      }
      const share = spec.y.scale === 'odds';
      const first = spec.series[0];
      const alike = spec.series.length > 1 && spec.series.every(s => !s.lo && !s.few && !s.labels && s.px.length === first.px.length && s.px.every((v, i) => v === first.px[i]));
      if (alike) return [[named(spec.x), ...spec.series.map(s => s.name + (spec.y.unit ? ', ' + spec.y.unit : ''))], first.px.map((v, i) => [v, ...spec.series.map(s => s.py[i])])];
      const head = ['series', named(spec.x), share ? 'share at most' : named(spec.y)];
      const bounds = spec.series.some(s => s.lo), labels = spec.series.some(s => s.labels);
      if (bounds) head.push('from', 'to');
      if (labels) head.push('');
      const rests = spec.series.some(s => s.few);
      if (rests) head.push('samples');
      const rows = spec.series.flatMap(s => s.px.map((v, i) => {
        const r = [s.name, v, s.py[i]];
        if (bounds) r.push(s.lo ? s.lo[i] : null, s.hi ? s.hi[i] : null);
        if (labels) r.push(s.labels ? s.labels[i] : '');
        if (rests) r.push(few(s, i) ? 'few' : '');
        return r;
      }));
      return [head, rows];
    }

    table(button) {
      if (this.sheet) {
        this.sheet.remove();
        this.sheet = null;
        button.setAttribute('aria-expanded', 'false');
        return;
      }
      const [head, rows] = this.rows(false);
      const most = 400;
      this.sheet = html('div', {class: 'scroll sheet', tabindex: 0, role: 'region', 'aria-label': 'Table: ' + this.spec.title});
      const t = html('table', {}, this.sheet);
      if (rows.length > most) html('caption', {}, t, `The first ${most} of ${rows.length} rows; the CSV has all.`);
      const h = html('tr', {}, html('thead', {}, t));
      head.forEach(x => html('th', {scope: 'col'}, h, x));
      const body = html('tbody', {}, t);
      for (const r of rows.slice(0, most)) {
        const tr = html('tr', {}, body);
        r.forEach(v => html('td', {}, tr, v === null || v === undefined ? '–' : String(v)));
      }
      this.plot.after(this.sheet);
      button.setAttribute('aria-expanded', 'true');
    }

    csv() {
      const quote = v => {
        let s = v === null || v === undefined ? '' : String(v);
        if (typeof v === 'string' && /^[=+\-@\t\r]/.test(s)) s = "'" + s; // a spreadsheet would run it
        return /[",\n]/.test(s) ? '"' + s.replaceAll('"', '""') + '"' : s;
      };
      const [head, rows] = this.rows(true);
      return [head, ...rows].map(r => r.map(quote).join(',')).join('\n') + '\n';
    }

    // picture is the chart with the styles it needs, colours resolved.
    picture() {
      const copy = this.svg.cloneNode(true);
      copy.querySelector('.cursor').remove();
      copy.setAttribute('xmlns', svgNS);
      const look = getComputedStyle(root);
      let css = '';
      for (const sheet of document.styleSheets) {
        for (const rule of sheet.cssRules) {
          if (rule.selectorText && rule.selectorText.includes('.c ')) css += rule.cssText.replace(/var\((--[\w-]+)\)/g, (_, name) => look.getPropertyValue(name).trim());
        }
      }
      const style = document.createElementNS(svgNS, 'style');
      style.textContent = css + 'text{font-family:system-ui,sans-serif}';
      copy.prepend(style);
      copy.insertBefore(svg('rect', {width: this.width, height: this.height, fill: look.getPropertyValue('--paper').trim()}), style.nextSibling);
      svg('title', {}, copy, this.spec.title);
      return new XMLSerializer().serializeToString(copy);
    }
  }

  function save(name, text, type) {
    const url = URL.createObjectURL(new Blob([text], {type}));
    const a = html('a', {href: url, download: name}, document.body);
    a.click();
    a.remove();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  // The page -------------------------------------------------------------

  const all = new Map();
  function show(plot) {
    if (!plot.clientWidth || plot.closest('details:not([open])')) return; // drawn when it is opened
    const had = all.get(plot);
    if (had && (had.width === Math.max(plot.clientWidth, 240) || matchMedia('print').matches)) return;
    try {
      const c = had || new Chart(plot, charts[plot.dataset.chart]);
      all.set(plot, c);
      c.draw();
      if (!had) drawn++;
    } catch (err) {
      failed++;
      console.error(plot.dataset.chart, err);
    }
    root.dataset.drawn = drawn;
    root.dataset.failed = failed;
    root.dataset.width = innerWidth;
    root.dataset.wider = root.scrollWidth > root.clientWidth;
  }
  const plots = [...document.querySelectorAll('.plot')];
  const watch = new ResizeObserver(list => list.forEach(e => show(e.target)));
  plots.forEach(p => {
    show(p);
    watch.observe(p);
  });
  for (const d of document.querySelectorAll('details.point')) {
    d.addEventListener('toggle', () => d.querySelectorAll('.plot').forEach(show));
  }
  // On paper a chart is as wide as a page or half of it, whatever the screen was.
  addEventListener('beforeprint', () => document.querySelectorAll('#tables details').forEach(d => { d.open = true; }));
  addEventListener('beforeprint', () => all.forEach((c, plot) => c.draw(plot.closest('.wide, .charts > :only-child') ? 720 : 350)));
  addEventListener('afterprint', () => all.forEach(c => c.draw()));
  const reach = () => { // a link into a closed point opens it
    const d = document.getElementById(location.hash.slice(1))?.closest('details');
    if (d) d.open = true;
  };
  addEventListener('hashchange', reach);
  reach();
  root.dataset.charts = plots.length;
  root.dataset.drawn = drawn;
  root.dataset.failed = failed;
  root.dataset.requests = performance.getEntriesByType('resource').length;
  root.dataset.ready = Math.round(performance.now());
})();
