import type { Node } from 'oxc-parser'
import type { Evaluator } from './flow/evaluator.ts'
import { lookup, type Scope } from './flow/graph.ts'
import { staticKey, unwrap } from './syntax.ts'

const SQL_TOOLS = new Set(['db', 'queryable'])

/** `` db.sql`…` ``, or `` sql`…` `` of `#heddle`. */
export function isSqlTag(tag: Node, scope: Scope, evaluator: Evaluator): boolean {
  const node = unwrap(tag)
  if (node.type === 'Identifier') {
    const imported = lookup(scope, node.name)?.imported
    if (imported && (imported.module === '#heddle' || imported.module === 'heddle')) return imported.name === 'sql'
  }
  return evaluator
    .evaluate(node, scope)
    .some((value) => value.kind === 'method' && value.method === 'sql' && SQL_TOOLS.has(value.tool))
}

/** The arguments of `sql.id(…)` and `sql.raw(…)`, which stand in the text. */
export function textCall(
  node: Node,
  scope: Scope,
  evaluator: Evaluator,
): { method: 'id' | 'raw'; args: readonly Node[] } | undefined {
  if (node.type !== 'CallExpression') return undefined
  const callee = unwrap(node.callee)
  if (callee.type !== 'MemberExpression') return undefined
  const method = staticKey(callee.property, callee.computed)
  if (method !== 'id' && method !== 'raw') return undefined
  return isSqlTag(callee.object, scope, evaluator) ? { method, args: node.arguments } : undefined
}
