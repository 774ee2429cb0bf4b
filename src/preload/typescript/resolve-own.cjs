const { statSync } = require('node:fs')
const { join } = require('node:path')
const { isOurs } = require('./places.cjs')

/**
 * What a module of the project imports from beside it, by its whole name: no other place is searched, and no link is followed.
 * @returns {string | undefined} undefined for what Node has to resolve
 */
exports.resolveOwn = (request, parent) => {
  if (!request.startsWith('.') || !request.endsWith('.ts') || !isOurs(parent?.filename ?? '')) return undefined
  const path = join(parent.path, request)
  return statSync(path, { throwIfNoEntry: false })?.isFile() ? path : undefined
}
