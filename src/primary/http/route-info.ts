import type { RouteInfo } from '../../contracts/route-info.ts'
import { readContract } from '../../core/schemas/route-contract.ts'
import type { RouteEntry } from './route-table.ts'

/** A route of the table as plugins see it. */
export function routeInfo(entry: Readonly<RouteEntry>): RouteInfo {
  const { plugin, method, path, isStream, isSocket, servedBy, timeoutMs, tags, summary, description, contract } = entry
  const { hasAuth, security, idempotency, hasRawBody, streamedBody, schemas, throws = {} } = readContract(contract)
  return {
    plugin,
    method,
    path,
    is_stream: isStream,
    is_socket: isSocket,
    host: servedBy,
    timeout_ms: timeoutMs,
    tags: [...tags],
    summary: summary ?? null,
    description: description ?? null,
    has_auth: hasAuth,
    security: security === undefined ? null : { schemes: [...security.schemes], is_required: security.isRequired },
    idempotency: idempotency ?? null,
    has_raw_body: hasRawBody ?? false,
    streamed_body: streamedBody ?? null,
    schemas,
    throws,
  }
}
