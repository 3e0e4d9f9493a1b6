-- wrk: entries of threads, or raw appends of the bytes that such entries are stored as; each thread goes
-- round all targets. Arguments after "--": a word, the number of targets, the common path before a target's
-- id, the part behind it, the body, the key or "-", and the ids. The word "own" gives each entry an id.

local requests = {}
local heads = {}
local at = 0
local threads = 0
local own = false
local count = 0
local text = ""

function setup(thread)
    thread:set("number", threads)
    threads = threads + 1
end

function init(args)
    local targets, before, behind, body, key = tonumber(args[2]), args[3], args[4], args[5], args[6]
    local headers = { ["Content-Type"] = "application/json" }
    own = args[1] == "own"
    text = body
    if key ~= "-" then
        headers["Authorization"] = "Bearer " .. key
    end
    for i = 1, targets do
        heads[i] = { before .. args[6 + i] .. behind, headers }
        requests[i] = wrk.format("POST", heads[i][1], headers, body)
    end
    at = math.floor(number * targets / 2) % targets
    stamp = string.format("%d-%d", os.time(), number)
end

function request()
    at = at % #requests + 1
    if not own then
        return requests[at]
    end
    count = count + 1
    local id = string.format('{"id":"%s-%d",', stamp, count)
    return wrk.format("POST", heads[at][1], heads[at][2], id .. string.sub(text, 2))
end

function done(summary, latency, _)
    dofile(os.getenv("BENCH_REPORT_LUA"))(summary, latency)
end
