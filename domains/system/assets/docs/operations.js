/** The operations of the document, each with its method, its path, and what it is: `http`, `stream` or `socket`. */
export function operationsOf(document) {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      ...operation,
      id: operation.operationId,
      path,
      method: method.toUpperCase(),
      kind: kindOf(operation.responses),
      needsToken: (operation.security ?? []).length > 0,
    })),
  )
}

function kindOf(responses) {
  if (responses['101'] !== undefined) return 'socket'
  return responses['200']?.content?.['text/event-stream'] === undefined ? 'http' : 'stream'
}
