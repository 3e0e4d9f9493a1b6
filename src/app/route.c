/* The table. Rows of one path stand together; fixed segments before those that take any text. */
#include "app/route.h"

#include "app/handlers.h"
#include "base/attr.h"

const struct route routes[] = {
    {HTTP_POST, "/api/session", ROUTE_FREE, ROUTE_POOL, session_open},
    {HTTP_DELETE, "/api/session", ROUTE_OPEN, ROUTE_POOL, session_close},
    {HTTP_GET, "/api/me", ROUTE_AGENT, ROUTE_POOL, me_get},

    {HTTP_GET, "/api/houses", ROUTE_AGENT, ROUTE_POOL, house_list},
    {HTTP_POST, "/api/houses", ROUTE_AGENT, ROUTE_POOL, house_create},
    {HTTP_GET, "/api/houses/:id", ROUTE_AGENT, ROUTE_POOL, house_get},
    {HTTP_PATCH, "/api/houses/:id", ROUTE_AGENT, ROUTE_POOL, house_change},
    {HTTP_DELETE, "/api/houses/:id", ROUTE_AGENT, ROUTE_POOL, house_delete},
    {HTTP_GET, "/api/houses/:id/members", ROUTE_AGENT, ROUTE_POOL, member_list},
    {HTTP_PUT, "/api/houses/:id/members/:agentId", ROUTE_AGENT, ROUTE_POOL, member_put},
    {HTTP_DELETE, "/api/houses/:id/members/:agentId", ROUTE_AGENT, ROUTE_POOL, member_remove},
    {HTTP_DELETE, "/api/houses/:id/members/:agentId/sandbox-tokens", ROUTE_AGENT, ROUTE_POOL,
     sandbox_end},
    {HTTP_POST, "/api/houses/:id/invites", ROUTE_AGENT, ROUTE_POOL, invite_create},
    {HTTP_GET, "/api/houses/:id/config", ROUTE_AGENT, ROUTE_POOL, house_config_get},
    {HTTP_PATCH, "/api/houses/:id/config", ROUTE_AGENT, ROUTE_POOL, house_config_change},
    {HTTP_DELETE, "/api/houses/:id/config", ROUTE_AGENT, ROUTE_POOL, house_config_delete},
    {HTTP_GET, "/api/houses/:id/usage", ROUTE_AGENT, ROUTE_POOL, house_usage},
    {HTTP_POST, "/api/invites/:token", ROUTE_OPEN, ROUTE_POOL, invite_claim},

    {HTTP_GET, "/api/agents", ROUTE_AGENT, ROUTE_POOL, agent_list},
    {HTTP_POST, "/api/agents", ROUTE_AGENT, ROUTE_POOL, agent_create},
    {HTTP_GET, "/api/agents/keys", ROUTE_AGENT, ROUTE_POOL, key_list},
    {HTTP_POST, "/api/agents/keys", ROUTE_AGENT, ROUTE_POOL, key_create},
    {HTTP_DELETE, "/api/agents/keys/:id", ROUTE_AGENT, ROUTE_POOL, key_revoke},
    {HTTP_GET, "/api/agents/:id", ROUTE_AGENT, ROUTE_POOL, agent_get},
    {HTTP_PATCH, "/api/agents/:id", ROUTE_AGENT, ROUTE_POOL, agent_change},
    {HTTP_DELETE, "/api/agents/:id", ROUTE_AGENT, ROUTE_POOL, agent_delete},

    {HTTP_GET, "/api/threads", ROUTE_AGENT, ROUTE_POOL, thread_list},
    {HTTP_POST, "/api/threads", ROUTE_AGENT, ROUTE_POOL, thread_create},
    {HTTP_GET, "/api/threads/:id", ROUTE_AGENT, ROUTE_POOL, thread_get},
    {HTTP_PATCH, "/api/threads/:id", ROUTE_AGENT, ROUTE_POOL, thread_change},
    {HTTP_DELETE, "/api/threads/:id", ROUTE_AGENT, ROUTE_POOL, thread_delete},
    {HTTP_GET, "/api/threads/:id/agents", ROUTE_AGENT, ROUTE_POOL, thread_agents},
    {HTTP_GET, "/api/threads/:id/config", ROUTE_AGENT, ROUTE_POOL, thread_config_get},
    {HTTP_PATCH, "/api/threads/:id/config", ROUTE_AGENT, ROUTE_POOL, thread_config_change},
    {HTTP_DELETE, "/api/threads/:id/config", ROUTE_AGENT, ROUTE_POOL, thread_config_delete},
    {HTTP_GET, "/api/threads/:id/entries", ROUTE_AGENT, ROUTE_STREAMS, entry_list},
    {HTTP_POST, "/api/threads/:id/entries", ROUTE_AGENT, ROUTE_WORKER, entry_post},
    {HTTP_DELETE, "/api/threads/:id/entries/:entryId", ROUTE_AGENT, ROUTE_STREAMS, entry_delete},
    {HTTP_GET, "/api/threads/:id/stream", ROUTE_AGENT, ROUTE_WORKER, thread_stream},
    {HTTP_POST, "/api/threads/:id/sandbox-tokens", ROUTE_AGENT, ROUTE_POOL, sandbox_mint},
    {HTTP_GET, "/api/threads/:id/usage", ROUTE_AGENT, ROUTE_POOL, thread_usage},
    {HTTP_GET, "/api/board", ROUTE_AGENT, ROUTE_WORKER, board_get},
    {HTTP_GET, "/api/board/stream", ROUTE_AGENT, ROUTE_WORKER, board_stream},

    {HTTP_POST, "/api/stream/:name", ROUTE_SANDBOX, ROUTE_STREAMS, sandbox_write},
};

const size_t route_count = ARRAY_COUNT(routes);
