// Reads the Prometheus text format, version 0.0.4, and insists on it: stricter
// than a scraper, which forgives much. What promtool's lint would complain of
// is an error here too.
import assert from 'node:assert/strict';
import { request } from './http.mjs';

const NAME = /^[a-z][a-z0-9_]*$/;
const LABEL = /^[a-z][a-z0-9_]*$/;
const VALUE = /^\d+(\.\d+)?$/;   // the server writes nothing else, and never NaN or a negative
const TYPES = new Set(['counter', 'gauge', 'histogram']);
const UNITS_WRONG = /_(ms|us|ns|milliseconds|microseconds|minutes|hours|kb|mb|kib|mib|kilobytes|megabytes|percent)(_|$)/;

// "a="1",b="2"" to a Map; quotes, backslashes and line ends in values are escaped.
function parseLabels(text, line) {
    const labels = new Map();
    let rest = text;
    while (rest !== '') {
        const hit = /^([^=]+)="((?:[^"\\]|\\[\\"n])*)"(,(?=.)|$)/.exec(rest);
        assert.ok(hit, `labels: ${line}`);
        assert.match(hit[1], LABEL, line);
        assert.ok(!labels.has(hit[1]), `a label twice: ${line}`);
        labels.set(hit[1], hit[2].replace(/\\n/g, '\n').replace(/\\(.)/g, '$1'));
        rest = rest.slice(hit[0].length);
    }
    return labels;
}

function parseSample(line) {
    const hit = /^([^{ ]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    assert.ok(hit, `a sample: ${JSON.stringify(line)}`);
    const [, name, labels, value] = hit;
    assert.match(name, NAME, line);
    assert.match(value, VALUE, line);
    assert.notEqual(labels, '', `empty braces: ${line}`);
    return { name, labels: labels === undefined ? new Map() : parseLabels(labels, line), value: Number(value) };
}

function lint(family) {
    const { name, type, help } = family;
    assert.match(name, NAME);
    assert.doesNotMatch(name, UNITS_WRONG, 'base units only');
    assert.doesNotMatch(name, /counter|gauge|histogram|__/, 'the type is no part of the name');
    assert.equal(name.endsWith('_total'), type === 'counter', `${name}: _total is for counters, and for all of them`);
    assert.match(name, /^(arbe|process)_/);
    assert.match(help, /^[A-Z0-9].*\.$/, `${name}: help is a sentence`);
}

function series(labels) {
    return [...labels].map(([key, value]) => `${key}=${JSON.stringify(value)}`).sort().join(',');
}

// Buckets ascend and do not decrease, the last is all, and sum and count are there.
function checkHistogram({ name, samples }) {
    const buckets = samples.filter((one) => one.name === `${name}_bucket`);
    const [sum, count] = ['sum', 'count'].map((end) => samples.filter((one) => one.name === `${name}_${end}`));
    assert.equal(sum.length, 1, `${name}_sum`);
    assert.equal(count.length, 1, `${name}_count`);
    assert.equal(samples.length, buckets.length + 2, name);
    let [bound, below] = [-1, 0];
    for (const bucket of buckets) {
        assert.deepEqual([...bucket.labels.keys()], ['le']);
        const le = bucket.labels.get('le') === '+Inf' ? Infinity : Number(bucket.labels.get('le'));
        assert.ok(le > bound, `${name}: le ${le} after ${bound}`);
        assert.ok(bucket.value >= below, `${name}: ${bucket.value} after ${below}`);
        [bound, below] = [le, bucket.value];
    }
    assert.equal(bound, Infinity, `${name}: a bucket for all`);
    assert.equal(below, count[0].value, `${name}_count`);
}

function checkFamily(family) {
    const seen = new Set();
    for (const sample of family.samples) {
        const key = `${sample.name}{${series(sample.labels)}}`;
        assert.ok(!seen.has(key), `twice: ${key}`);
        seen.add(key);
        const own = family.type === 'histogram' ? /^(.*)_(?:bucket|sum|count)$/.exec(sample.name)?.[1] : sample.name;
        assert.equal(own, family.name, `a sample of ${family.name}`);
    }
    lint(family);
    if (family.type === 'histogram') {
        checkHistogram(family);
    }
}

class Metrics {
    constructor(families) {
        this.families = families;
    }

    family(name) {
        const found = this.families.get(name);
        assert.ok(found, `there is no ${name}`);
        return found;
    }

    // The value of one series; labels as { method: 'GET' }.
    value(name, labels = {}) {
        const family = this.families.get(name) ?? this.family(name.replace(/_(bucket|sum|count)$/, ''));
        const wanted = series(Object.entries(labels));
        const found = family.samples.find((one) => one.name === name && series(one.labels) === wanted);
        return found?.value ?? 0;
    }

    // All series of a metric that are not 0, as { 'GET 200': 3 }: the labels' values in order.
    all(name) {
        return Object.fromEntries(this.family(name).samples.filter((one) => one.value !== 0)
            .map((one) => [[...one.labels.values()].join(' '), one.value]));
    }

    labels(name) {
        return new Set(this.family(name).samples.flatMap((one) => [...one.labels.keys()]));
    }
}

export function parseMetrics(text) {
    assert.ok(text.endsWith('\n'), 'the last line ends too');
    const families = new Map();
    let family = null;
    let help = null;
    for (const line of text.slice(0, -1).split('\n')) {
        const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
        if (comment?.[1] === 'HELP') {
            assert.equal(help, null, `HELP without TYPE before ${line}`);
            help = { name: comment[2], text: comment[3] };
        } else if (comment) {
            assert.equal(help?.name, comment[2], `HELP comes right before TYPE: ${line}`);
            assert.ok(TYPES.has(comment[3]), line);
            assert.ok(!families.has(comment[2]), `${comment[2]} comes in one piece`);
            family = { name: comment[2], type: comment[3], help: help.text, samples: [] };
            families.set(family.name, family);
            help = null;
        } else {
            assert.ok(family !== null && help === null, `a sample before its TYPE: ${line}`);
            family.samples.push(parseSample(line));
        }
    }
    families.forEach(checkFamily);
    return new Metrics(families);
}

// How many live readers of a mode, 'long_poll' or 'sse', the server has: a request that was sent is not one yet.
export async function liveReaders(server, mode) {
    const { text } = await request(server.base, 'GET', '/metrics');
    return parseMetrics(text).value('arbe_waiters', { mode });
}
