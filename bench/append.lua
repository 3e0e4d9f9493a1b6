-- wrk: appends of one size to many streams, each thread going round all of them.
-- Arguments after "--": the streams' common path, how many there are, bytes in a body.
-- Requests are built once, so that Lua does not become what is measured.

local requests = {}
local at = 0
local threads = 0

function setup(thread)
    thread:set("number", threads)
    threads = threads + 1
end

function init(args)
    local path, streams, bytes = args[1], tonumber(args[2]), tonumber(args[3])
    local headers = { ["Content-Type"] = "application/octet-stream" }
    local body = string.rep("a", bytes)
    for i = 0, streams - 1 do
        requests[i + 1] = wrk.format("POST", path .. i, headers, body)
    end
    at = math.floor(number * streams / 7) % streams
end

function request()
    at = at % #requests + 1
    return requests[at]
end

function done(summary, latency, _)
    dofile(os.getenv("BENCH_REPORT_LUA"))(summary, latency)
end
