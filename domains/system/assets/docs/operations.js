/** The operations of the document, each with its method, its path, and what it is: `http`, `stream` or `socket`. */
export function operationsOf(document) {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      ...operation,
      id: operation.operationId,
      path,
      method: method.toUpperCase(),
      kind: kindOf(operation.responses),
      needsToken: operation.security.some((way) => way.bearer !== undefined),
      lock: lockOf(operation.security),
    })),
  )
}

/** How an operation wants to know who calls: undefined where it does not, or serves strangers, too. */
function lockOf(security) {
  const ways = security.flatMap((way) => Object.keys(way))
  if (ways.length === 0 || security.some((way) => Object.keys(way).length === 0)) return undefined
  return ways.map((way) => (way === 'bearer' ? 'token' : way)).join(' or ')
}

function kindOf(responses) {
  if (responses['101'] !== undefined) return 'socket'
  return responses['200']?.content?.['text/event-stream'] === undefined ? 'http' : 'stream'
}
