import type { Node } from 'oxc-parser'
import {
  buildFlowGraph,
  type Cell,
  type ClassInfo,
  type FlowGraph,
  type Frame,
  type FunctionInfo,
  lookup,
  memberCell,
  type Source,
} from './flow-graph.ts'
import type { ModuleExport, ModuleExports } from './module-exports.ts'
import { staticKey, unwrap } from './syntax.ts'
import { ToolTypes } from './tool-types.ts'
import { type HandedCall, type Shape, TOOL_OF_TYPE, type Value } from './tool-value.ts'

/** Of a file that this one imports from its own domain; undefined when there is none. */
export type ForeignExports = (specifier: string) => ModuleExports | undefined

const MAX_SHAPE_DEPTH = 3

/** Follows the injected tools through one file, under whatever names they travel. */
export class ToolFlow {
  readonly graph: FlowGraph
  /** What functions do with their arguments, as far as it is known by now. */
  readonly handed = new Map<FunctionInfo, HandedCall[]>()
  readonly #foreign: ForeignExports
  readonly #interned = new Map<unknown, Value>()
  readonly #shapes = new Map<Shape, Value>()
  readonly #types = new ToolTypes(this)
  #changed = false

  constructor(program: Parameters<typeof buildFlowGraph>[0], foreign: ForeignExports = () => undefined) {
    this.graph = buildFlowGraph(program)
    this.#foreign = foreign
    this.#recordSources()
    this.#seed()
    // Each round carries values one step on; a file that needs more steps than this was not written by hand.
    for (let round = 0; round < 32; round++) {
      this.#changed = false
      for (const { target, source, frame } of this.graph.assignments) {
        if (source) this.#assign(target, this.evaluate(source.node, source.frame), frame)
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

  /** What a name, or a member of a name, is in the file that it is imported from, and the keys that lead there. */
  imported(node: Node, frame: Frame): { from: ModuleExport; keys: readonly string[] } | undefined {
    const keys: string[] = []
    let at = unwrap(node)
    while (at.type === 'MemberExpression') {
      const key = staticKey(at.property, at.computed)
      if (key === undefined) return undefined
      keys.unshift(key)
      at = unwrap(at.object)
    }
    const source = at.type === 'Identifier' ? lookup(frame, at.name)?.imported : undefined
    if (!source) return undefined
    let exports = this.#foreign(source.module)
    let name: string | undefined = source.name
    if (name === '*') name = keys.shift()
    for (;;) {
      const found: ModuleExport | undefined = name === undefined ? undefined : exports?.[name]
      if (!found?.module) return found && { from: found, keys }
      exports = found.module
      name = keys.shift()
    }
  }

  /** What other files need to know of a value to find tools in it. */
  shapesOf(node: Node, frame: Frame): Shape[] {
    return this.toShapes(this.evaluate(node, frame), 0)
  }

  shapesOfType(name: string): Shape[] {
    return this.toShapes(this.#types.named(name, this.graph.root), 0)
  }

  toShapes(values: readonly Value[], depth = 0): Shape[] {
    return depth > MAX_SHAPE_DEPTH ? [] : values.flatMap((value) => this.#toShape(value, depth) ?? [])
  }

  #toShape(value: Value, depth: number): Shape | undefined {
    switch (value.kind) {
      case 'tools':
        return { tools: true }
      case 'tool':
        return { tool: value.tool }
      case 'method':
        return { tool: value.tool, method: value.method }
      case 'shape':
        return value.shape
      case 'function': {
        const returns = this.toShapes([...value.info.returns.values] as Value[], depth + 1)
        const hands = this.handed.get(value.info)
        return returns.length > 0 || hands ? { members: {}, returns, hands } : undefined
      }
      case 'class': {
        const instance = this.#intern(value.info, { kind: 'instance', info: value.info })
        return { members: {}, instance: this.toShapes([instance], depth) }
      }
      case 'instance':
      case 'object': {
        const chain = value.kind === 'instance' ? this.#classChain(value.info) : [value.info]
        const keys = new Set(chain.flatMap(({ members }) => [...members.keys()]))
        const members: Record<string, Shape[]> = {}
        for (const key of keys) {
          const shapes = this.toShapes(this.member(value, key), depth + 1)
          if (shapes.length > 0) members[key] = shapes
        }
        return Object.keys(members).length > 0 ? { members } : undefined
      }
    }
  }

  fromShape(shape: Shape): Value {
    if ('members' in shape) {
      const known = this.#shapes.get(shape)
      if (known) return known
      const value: Value = { kind: 'shape', shape }
      this.#shapes.set(shape, value)
      return value
    }
    if ('tools' in shape) return this.#intern('tools', { kind: 'tools' })
    return 'method' in shape ? this.#method(shape.tool, shape.method) : this.#tool(shape.tool)
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

  /** All expressions that a name may stand for, when they are more than one and all known. */
  alternatives({ node, frame }: Source): readonly Source[] | undefined {
    const cell = this.#cellOf(node, frame)
    return cell && !cell.opaque && cell.sources.length > 1 && cell.sources.length <= 16 ? cell.sources : undefined
  }

  #cellOf(node: Node, frame: Frame): Cell | undefined {
    if (node.type === 'Identifier') return lookup(frame, node.name)
    if (node.type !== 'MemberExpression') return undefined
    const key = staticKey(node.property, node.computed)
    if (!key) return undefined
    const cells = this.evaluate(node.object, frame).flatMap((value) => this.#memberCells(value, key))
    return cells.length === 1 ? cells[0] : undefined
  }

  #seed(): void {
    for (const { cell, type, frame } of this.graph.annotated) this.#assign(cell, this.#types.read(type, frame), frame)
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
    return this.#classChain(info).find(({ construct }) => construct)?.construct
  }

  /** The class and those of this file that it extends, nearest first. One that extends itself is cut off. */
  #classChain(info: ClassInfo): ClassInfo[] {
    const chain: ClassInfo[] = []
    for (let at: ClassInfo | undefined = info; at && !chain.includes(at); at = this.#superOf(at)) chain.push(at)
    return chain
  }

  #superOf(info: ClassInfo): ClassInfo | undefined {
    const { superClass } = info.node
    return superClass ? this.graph.classes.get(this.resolve({ node: superClass, frame: info.frame }).node) : undefined
  }

  /** A class of this file, as a type. */
  instancesOf(cell: Cell | undefined): Value[] {
    return ([...(cell?.values ?? [])] as Value[]).flatMap((value) =>
      value.kind === 'class' ? [this.#intern(value.info, { kind: 'instance', info: value.info })] : [],
    )
  }

  /** What a type of another module is. */
  ofModule(module: string, name: string): Value[] {
    if (module !== '#heddle') {
      const found = this.#foreign(module)?.[name]
      return [...(found?.type ?? []), ...(found?.shapes ?? []).flatMap(instanceShapes)].map((s) => this.fromShape(s))
    }
    if (name === 'Tools') return [this.#intern('tools', { kind: 'tools' })]
    const tool = TOOL_OF_TYPE[name]
    return tool ? [this.#tool(tool)] : []
  }

  /** All that an expression may be. */
  evaluate(expression: Node, frame: Frame): Value[] {
    const node = unwrap(expression)
    switch (node.type) {
      case 'Identifier':
        return this.#named(node.name, frame)
      case 'ThisExpression': {
        const info = frame.self
        return info ? [this.#intern(info, { kind: 'instance', info })] : []
      }
      case 'MemberExpression': {
        const key = staticKey(node.property, node.computed)
        return key ? this.evaluate(node.object, frame).flatMap((value) => this.member(value, key)) : []
      }
      case 'LogicalExpression':
        return [...this.evaluate(node.left, frame), ...this.evaluate(node.right, frame)]
      case 'ConditionalExpression':
        return [...this.evaluate(node.consequent, frame), ...this.evaluate(node.alternate, frame)]
      case 'SequenceExpression':
        return node.expressions.length > 0 ? this.evaluate(node.expressions.at(-1)!, frame) : []
      case 'AssignmentExpression':
        return this.evaluate(node.right, frame)
      case 'CallExpression':
        return this.#evaluateCall(node.callee, node.arguments, frame)
      case 'NewExpression':
        return this.evaluate(node.callee, frame).flatMap((value) =>
          value.kind === 'class'
            ? [this.#intern(value.info, { kind: 'instance', info: value.info })]
            : this.#instancesOfShape(value),
        )
      default:
        return this.#literal(node)
    }
  }

  #named(name: string, frame: Frame): Value[] {
    const cell = lookup(frame, name)
    if (!cell) return []
    if (!cell.imported) return [...cell.values] as Value[]
    const exports = this.#foreign(cell.imported.module)
    if (!exports) return []
    if (cell.imported.name !== '*') return this.#valuesOfExport(exports[cell.imported.name])
    return this.#valuesOfExport({ module: exports })
  }

  #valuesOfExport(exported: ModuleExport | undefined): Value[] {
    if (!exported?.module) return (exported?.shapes ?? []).map((shape) => this.fromShape(shape))
    const { module } = exported
    return [this.#intern(module, { kind: 'shape', shape: { members: membersOfModule(module) } })]
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
      if (key === 'bind') return this.evaluate(target.object, frame)
      if (key === 'freeze' && args[0]) return this.evaluate(args[0], frame)
    }
    return this.evaluate(target, frame).flatMap((value) => {
      if (value.kind === 'function') return [...value.info.returns.values] as Value[]
      return value.kind === 'shape' ? (value.shape.returns ?? []).map((shape) => this.fromShape(shape)) : []
    })
  }

  #instancesOfShape(value: Value): Value[] {
    return value.kind === 'shape' ? (value.shape.instance ?? []).map((shape) => this.fromShape(shape)) : []
  }

  /** What a member of a value may be. */
  member(value: Value, key: string): Value[] {
    if (value.kind === 'tools') return [this.#tool(key)]
    if (value.kind === 'tool') {
      return [this.#method(value.tool, key)]
    }
    if (value.kind === 'shape') return (value.shape.members[key] ?? []).map((shape) => this.fromShape(shape))
    if (value.kind === 'instance' && this.#memberCells(value, key).length === 0) return this.#inherited(value.info, key)
    const values = this.#memberCells(value, key).flatMap((cell) => [...cell.values] as Value[])
    if (value.kind !== 'object' || value.info.members.has(key)) return values
    // An object may be spread into itself, so what was spread into a spread object is left out.
    const spread = ([...value.info.spread.values] as Value[]).filter(({ kind }) => kind !== 'object')
    return [...values, ...spread.flatMap((each) => this.member(each, key))]
  }

  /** A member of a base class that stands in another file. */
  #inherited(info: ClassInfo, key: string): Value[] {
    let top = info
    for (let depth = 0, above = this.#superOf(top); above && depth < 16; depth++, above = this.#superOf(top))
      top = above
    if (!top.node.superClass) return []
    const bases = this.evaluate(top.node.superClass, top.frame).flatMap((base) => this.#instancesOfShape(base))
    return bases.flatMap((base) => this.member(base, key))
  }

  #memberCells(value: Value, key: string): Cell[] {
    if (value.kind === 'object') return value.info.members.has(key) ? [value.info.members.get(key)!] : []
    if (value.kind !== 'instance' && value.kind !== 'class') return []
    for (const { members } of this.#classChain(value.info)) {
      const cell = members.get(key)
      if (cell) return [cell]
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
                values.flatMap((value) => this.member(value, key)),
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
    return this.evaluate(object, frame).flatMap((value) => {
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
    for (const value of this.evaluate(node.callee, frame)) {
      if (value.kind === 'function') this.#bind(value.info, node.arguments, frame)
      else if (value.kind === 'class') this.#bind(this.#constructorOf(value.info), node.arguments, frame)
      else if (value.kind === 'method' && value.tool === 'db' && value.method === 'transaction') {
        // The callback's parameter is the transaction: it takes statements as the tool does.
        for (const work of node.arguments[0] ? this.evaluate(node.arguments[0], frame) : []) {
          if (work.kind !== 'function' || !work.info.params[0]) continue
          this.#assign(work.info.params[0], [this.#tool('db')], work.info.frame)
        }
      }
    }
  }

  #bind(info: FunctionInfo | undefined, args: readonly Node[], frame: Frame): void {
    info?.params.forEach((param, index) => {
      const argument = args[index]
      if (argument) this.#assign(param, this.evaluate(argument, frame), info.frame)
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

  #method(tool: string, method: string): Value {
    return this.#intern(`${tool}.${method}`, { kind: 'method', tool, method })
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

function membersOfModule(module: ModuleExports): Record<string, Shape[]> {
  const members: Record<string, Shape[]> = {}
  for (const [name, { shapes, module: inner }] of Object.entries(module)) {
    members[name] = inner ? [{ members: membersOfModule(inner) }] : (shapes ?? [])
  }
  return members
}

/** What a value of a class's type is. */
function instanceShapes(shape: Shape): Shape[] {
  return 'members' in shape ? (shape.instance ?? []) : []
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
