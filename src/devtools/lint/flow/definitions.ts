import type { Node } from 'oxc-parser'
import { staticKey } from '../syntax.ts'
import type { Evaluator } from './evaluator.ts'
import { type Expression, type FlowGraph, isLocation, type Location, lookup, type Scope } from './graph.ts'

/** Notes for each variable the expressions that define it. Needs no values. */
export function recordDefinitions({ assignments }: FlowGraph): void {
  for (const { target, source, scope } of assignments) {
    if (isLocation(target)) {
      if (source) target.definitions.push(source)
    } else if (target.type === 'Identifier') define(lookup(scope, target.name), source)
    else markOpaque(target, scope)
  }
}

/** The same for members, once the values of their objects are known. */
export function recordMemberDefinitions({ assignments }: FlowGraph, evaluator: Evaluator): void {
  for (const { target, source, scope } of assignments) {
    if (isLocation(target) || target.type !== 'MemberExpression') continue
    const key = staticKey(target.property, target.computed)
    if (!key) continue
    for (const location of evaluator.writableLocations(target.object, key, scope)) define(location, source)
  }
}

function define(location: Location | undefined, definition: Expression | undefined): void {
  if (!location) return
  if (definition) location.definitions.push(definition)
  else location.opaque = true
}

/** A name that is destructured out of a value holds more than one expression can say. */
function markOpaque(pattern: Node, scope: Scope): void {
  switch (pattern.type) {
    case 'Identifier':
      define(lookup(scope, pattern.name), undefined)
      return
    case 'AssignmentPattern':
      markOpaque(pattern.left, scope)
      return
    case 'RestElement':
      markOpaque(pattern.argument, scope)
      return
    case 'ArrayPattern':
      for (const element of pattern.elements) if (element) markOpaque(element, scope)
      return
    case 'ObjectPattern':
      for (const property of pattern.properties) {
        markOpaque(property.type === 'Property' ? property.value : property, scope)
      }
  }
}
