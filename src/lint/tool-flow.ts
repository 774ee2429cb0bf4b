import type { Node, TSType } from 'oxc-parser'
import {
  buildFlowGraph,
  type Cell,
  type ClassInfo,
  type FlowGraph,
  type Frame,
  type FunctionInfo,
  lookup,
  memberCell,
  type ObjectInfo,
  type Source,
} from './flow-graph.ts'
import { staticKey, unwrap } from './syntax.ts'

/** What an expression may be, as far as the lint cares. */
type Value =
  | { kind: 'tools' }
  | { kind: 'tool'; tool: string }
  | { kind: 'method'; tool: string; method: string }
  | { kind: 'instance'; info: ClassInfo }
  | { kind: 'class'; info: ClassInfo }
  | { kind: 'function'; info: FunctionInfo }
  | { kind: 'object'; info: ObjectInfo }

/** A call of a tool's method. */
export interface ToolCallSite {
  tool: string
  method: string
  args: readonly Node[]
  frame: Frame
  /** Where the callee ends: the method's name. */
  offset: number
}

/** The types of `#heddle` that say which tool a parameter is. */
const TOOL_OF_TYPE: Readonly<Record<string, string>> = {
  Auth: 'auth',
  Config: 'config',
  Db: 'db',
  Queryable: 'db',
  EventBus: 'event_bus',
  Http: 'http',
  Logger: 'logger',
  Registry: 'registry',
  Scheduler: 'scheduler',
  State: 'state',
  Telemetry: 'telemetry',
}
/** Generic types that leave the members of their first argument as they are. */
const TRANSPARENT_TYPES = new Set(['Pick', 'Omit', 'Readonly', 'Partial', 'Required', 'NonNullable'])

/** Follows the injected tools through one file, under whatever names they travel. */
export class ToolFlow {
  readonly graph: FlowGraph
  readonly #interned = new Map<unknown, Value>()
  #changed = false

  constructor(program: Parameters<typeof buildFlowGraph>[0]) {
    this.graph = buildFlowGraph(program)
    this.#recordSources()
    this.#seed()
    // Each round carries values one step on; a file that needs more steps than this was not written by hand.
    for (let round = 0; round < 32; round++) {
      this.#changed = false
      for (const { target, source, frame } of this.graph.assignments) {
        if (source) this.#assign(target, this.#evaluate(source.node, source.frame), frame)
      }
      for (const { node, frame } of this.graph.calls) this.#bindArguments(node, frame)
      if (!this.#changed) break
    }
    this.#recordMemberSources()
  }

  /** The name of the default-exported class; undefined when there is none. */
  get className(): string | undefined {
    const info = this.#defaultClass()
    if (!info) return undefined
    if (info.node.id) return info.node.id.name
    const exported = this.graph.defaultExport?.node
    return exported?.type === 'Identifier' ? exported.name : 'default'
  }

  toolCalls(): ToolCallSite[] {
    const sites: ToolCallSite[] = []
    for (const { node, frame } of this.graph.calls) {
      if (node.type !== 'CallExpression') continue
      const callee = unwrap(node.callee)
      for (const value of this.#evaluate(callee, frame)) {
        if (value.kind !== 'method') continue
        sites.push({ tool: value.tool, method: value.method, args: node.arguments, frame, offset: callee.end - 1 })
      }
    }
    return sites
  }

  /** The one expression that a constant name or member stands for, else the expression itself. */
  resolve(source: Source): Source {
    let at: Source = { node: unwrap(source.node), frame: source.frame }
    for (let steps = 0; steps < 32; steps++) {
      const cell = this.#cellOf(at.node, at.frame)
      const next = cell && !cell.opaque && cell.sources.length === 1 ? cell.sources[0] : undefined
      if (!next) return at
      at = { node: unwrap(next.node), frame: next.frame }
    }
    return at
  }

  #cellOf(node: Node, frame: Frame): Cell | undefined {
    if (node.type === 'Identifier') return lookup(frame, node.name)
    if (node.type !== 'MemberExpression') return undefined
    const key = staticKey(node.property, node.computed)
    if (!key) return undefined
    const cells = this.#evaluate(node.object, frame).flatMap((value) => this.#memberCells(value, key))
    return cells.length === 1 ? cells[0] : undefined
  }

  #seed(): void {
    for (const { cell, type, frame } of this.graph.annotated) this.#assign(cell, this.#valuesOfType(type, frame), frame)
    const plugin = this.#defaultClass()
    const construct = plugin && this.#constructorOf(plugin)
    if (construct?.params[0])
      this.#assign(construct.params[0], [this.#intern('tools', { kind: 'tools' })], construct.frame)
  }

  #defaultClass(): ClassInfo | undefined {
    const exported = this.graph.defaultExport
    return exported && this.graph.classes.get(this.resolve(exported).node)
  }

  /** Its own constructor, or the one it inherits from a class of the same file. */
  #constructorOf(info: ClassInfo): FunctionInfo | undefined {
    let at: ClassInfo | undefined = info
    for (let depth = 0; at && depth < 16; depth++) {
      if (at.construct) return at.construct
      at = this.#superOf(at)
    }
    return undefined
  }

  #superOf(info: ClassInfo): ClassInfo | undefined {
    const { superClass } = info.node
    return superClass ? this.graph.classes.get(this.resolve({ node: superClass, frame: info.frame }).node) : undefined
  }

  #valuesOfType(type: TSType, frame: Frame): Value[] {
    if (type.type === 'TSUnionType' || type.type === 'TSIntersectionType') {
      return type.types.flatMap((member) => this.#valuesOfType(member, frame))
    }
    if (type.type === 'TSIndexedAccessType') {
      const index = type.indexType.type === 'TSLiteralType' ? type.indexType.literal : undefined
      if (index?.type !== 'Literal' || typeof index.value !== 'string') return []
      const key = index.value
      return this.#valuesOfType(type.objectType, frame).flatMap((value) => this.#member(value, key))
    }
    if (type.type !== 'TSTypeReference' || type.typeName.type !== 'Identifier') return []
    const name = type.typeName.name
    const argument = type.typeArguments?.params[0]
    if (TRANSPARENT_TYPES.has(name) && argument) return this.#valuesOfType(argument, frame)
    const imported = lookup(frame, name)?.imported
    if (imported?.module !== '#heddle') return []
    if (imported.name === 'Tools') return [this.#intern('tools', { kind: 'tools' })]
    const tool = TOOL_OF_TYPE[imported.name]
    return tool ? [this.#tool(tool)] : []
  }

  #evaluate(expression: Node, frame: Frame): Value[] {
    const node = unwrap(expression)
    switch (node.type) {
      case 'Identifier':
        return [...(lookup(frame, node.name)?.values ?? [])] as Value[]
      case 'ThisExpression': {
        const info = frame.self
        return info ? [this.#intern(info, { kind: 'instance', info })] : []
      }
      case 'MemberExpression': {
        const key = staticKey(node.property, node.computed)
        return key ? this.#evaluate(node.object, frame).flatMap((value) => this.#member(value, key)) : []
      }
      case 'LogicalExpression':
        return [...this.#evaluate(node.left, frame), ...this.#evaluate(node.right, frame)]
      case 'ConditionalExpression':
        return [...this.#evaluate(node.consequent, frame), ...this.#evaluate(node.alternate, frame)]
      case 'SequenceExpression':
        return node.expressions.length > 0 ? this.#evaluate(node.expressions.at(-1)!, frame) : []
      case 'AssignmentExpression':
        return this.#evaluate(node.right, frame)
      case 'CallExpression':
        return this.#evaluateCall(node.callee, node.arguments, frame)
      case 'NewExpression':
        return this.#evaluate(node.callee, frame).flatMap((value) =>
          value.kind === 'class' ? [this.#intern(value.info, { kind: 'instance', info: value.info })] : [],
        )
      default:
        return this.#literal(node)
    }
  }

  #literal(node: Node): Value[] {
    const fn = this.graph.functions.get(node)
    if (fn) return [this.#intern(fn, { kind: 'function', info: fn })]
    const info = this.graph.classes.get(node)
    if (info) return [this.#intern(node, { kind: 'class', info })]
    const object = this.graph.objects.get(node)
    return object ? [this.#intern(object, { kind: 'object', info: object })] : []
  }

  #evaluateCall(callee: Node, args: readonly Node[], frame: Frame): Value[] {
    const target = unwrap(callee)
    if (target.type === 'MemberExpression') {
      const key = staticKey(target.property, target.computed)
      if (key === 'bind') return this.#evaluate(target.object, frame)
      if (key === 'freeze' && args[0]) return this.#evaluate(args[0], frame)
    }
    return this.#evaluate(target, frame).flatMap((value) =>
      value.kind === 'function' ? ([...value.info.returns.values] as Value[]) : [],
    )
  }

  #member(value: Value, key: string): Value[] {
    if (value.kind === 'tools') return [this.#tool(key)]
    if (value.kind === 'tool') {
      return [this.#intern(`${value.tool}.${key}`, { kind: 'method', tool: value.tool, method: key })]
    }
    const values = this.#memberCells(value, key).flatMap((cell) => [...cell.values] as Value[])
    if (value.kind !== 'object' || value.info.members.has(key)) return values
    // An object may be spread into itself, so what was spread into a spread object is left out.
    const spread = ([...value.info.spread.values] as Value[]).filter(({ kind }) => kind !== 'object')
    return [...values, ...spread.flatMap((each) => this.#member(each, key))]
  }

  #memberCells(value: Value, key: string): Cell[] {
    if (value.kind === 'object') return value.info.members.has(key) ? [value.info.members.get(key)!] : []
    if (value.kind !== 'instance' && value.kind !== 'class') return []
    let at: ClassInfo | undefined = value.info
    for (let depth = 0; at && depth < 16; depth++) {
      const cell = at.members.get(key)
      if (cell) return [cell]
      at = this.#superOf(at)
    }
    return []
  }

  #assign(target: Node | Cell, values: readonly Value[], frame: Frame): void {
    if (values.length === 0) return
    if ('values' in target) {
      for (const value of values) {
        if (target.values.has(value)) continue
        target.values.add(value)
        this.#changed = true
      }
      return
    }
    const pattern = unwrap(target as Node)
    switch (pattern.type) {
      case 'Identifier': {
        const cell = lookup(frame, pattern.name)
        if (cell) this.#assign(cell, values, frame)
        return
      }
      case 'AssignmentPattern':
        this.#assign(pattern.left, values, frame)
        return
      case 'RestElement':
        this.#assign(pattern.argument, values, frame)
        return
      case 'ObjectPattern':
        for (const property of pattern.properties) {
          if (property.type !== 'Property') this.#assign(property, values, frame)
          else {
            const key = staticKey(property.key, property.computed)
            if (key)
              this.#assign(
                property.value,
                values.flatMap((value) => this.#member(value, key)),
                frame,
              )
          }
        }
        return
      case 'MemberExpression': {
        const key = staticKey(pattern.property, pattern.computed)
        if (!key) return
        for (const cell of this.#writableCells(pattern.object, key, frame)) this.#assign(cell, values, frame)
      }
    }
  }

  /** The cells that an assignment to `object.key` writes, made when there are none. */
  #writableCells(object: Node, key: string, frame: Frame): Cell[] {
    return this.#evaluate(object, frame).flatMap((value) => {
      if (value.kind !== 'instance' && value.kind !== 'class' && value.kind !== 'object') return []
      const found = this.#memberCells(value, key)
      return found.length > 0 ? found : [memberCell(value.info.members, key)]
    })
  }

  #bindArguments(node: FlowGraph['calls'][number]['node'], frame: Frame): void {
    if (node.callee.type === 'Super') {
      const parent = frame.self && this.#superOf(frame.self)
      if (parent) this.#bind(this.#constructorOf(parent), node.arguments, frame)
      return
    }
    for (const value of this.#evaluate(node.callee, frame)) {
      if (value.kind === 'function') this.#bind(value.info, node.arguments, frame)
      else if (value.kind === 'class') this.#bind(this.#constructorOf(value.info), node.arguments, frame)
      else if (value.kind === 'method' && value.tool === 'db' && value.method === 'transaction') {
        // The callback's parameter is the transaction: it takes statements as the tool does.
        for (const work of node.arguments[0] ? this.#evaluate(node.arguments[0], frame) : []) {
          if (work.kind !== 'function' || !work.info.params[0]) continue
          this.#assign(work.info.params[0], [this.#tool('db')], work.info.frame)
        }
      }
    }
  }

  #bind(info: FunctionInfo | undefined, args: readonly Node[], frame: Frame): void {
    info?.params.forEach((param, index) => {
      const argument = args[index]
      if (argument) this.#assign(param, this.#evaluate(argument, frame), info.frame)
    })
  }

  /** Which expressions a name stands for, before any value is known. */
  #recordSources(): void {
    for (const { target, source, frame } of this.graph.assignments) {
      if ('values' in target) {
        if (source) target.sources.push(source)
      } else if (target.type === 'Identifier') note(lookup(frame, target.name), source)
      else markOpaque(target as Node, frame)
    }
  }

  #recordMemberSources(): void {
    for (const { target, source, frame } of this.graph.assignments) {
      if ('values' in target || target.type !== 'MemberExpression') continue
      const key = staticKey(target.property, target.computed)
      if (!key) continue
      for (const cell of this.#writableCells(target.object, key, frame)) note(cell, source)
    }
  }

  #tool(tool: string): Value {
    return this.#intern(`tool ${tool}`, { kind: 'tool', tool })
  }

  /** One object per value, so that a set holds each once. */
  #intern(key: unknown, value: Value): Value {
    const known = this.#interned.get(key)
    if (known) return known
    this.#interned.set(key, value)
    return value
  }
}

function note(cell: Cell | undefined, source: Source | undefined): void {
  if (!cell) return
  if (source) cell.sources.push(source)
  else cell.opaque = true
}

/** A name that is taken out of something holds more than one expression can say. */
function markOpaque(pattern: Node, frame: Frame): void {
  switch (pattern.type) {
    case 'Identifier': {
      const cell = lookup(frame, pattern.name)
      if (cell) cell.opaque = true
      return
    }
    case 'AssignmentPattern':
      markOpaque(pattern.left, frame)
      return
    case 'RestElement':
      markOpaque(pattern.argument, frame)
      return
    case 'ArrayPattern':
      for (const element of pattern.elements) if (element) markOpaque(element, frame)
      return
    case 'ObjectPattern':
      for (const property of pattern.properties) {
        markOpaque(property.type === 'Property' ? property.value : property, frame)
      }
  }
}
