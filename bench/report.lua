-- What both wrk scripts print when they are done: one line of JSON for lib/wrk.mjs.

return function(summary, latency)
    local errors = summary.errors
    io.write(string.format(
        'WRK {"requests":%d,"duration_us":%d,"bytes":%d,"p50_us":%d,"p99_us":%d,'
            .. '"bad_status":%d,"broken":%d}\n',
        summary.requests, summary.duration, summary.bytes,
        latency:percentile(50), latency:percentile(99), errors.status,
        errors.connect + errors.read + errors.write + errors.timeout))
end
