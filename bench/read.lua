-- wrk: plain GETs of the address given on the command line; only the report is ours.

function done(summary, latency, _)
    dofile(os.getenv("BENCH_REPORT_LUA"))(summary, latency)
end
