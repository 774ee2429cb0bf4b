// The names of one source file: where each is declared, what is assigned to it, and the calls that are made under it.
import path from 'node:path'
import type {
  ArrowFunctionExpression,
  CallExpression,
  Class,
  Function as FunctionNode,
  NewExpression,
  Node,
  ObjectExpression,
  Program,
  TSInterfaceDeclaration,
  TSType,
  TSTypeLiteral,
} from 'oxc-parser'
import { forEachChild, keyOf, type Syntax, unwrap } from './syntax.ts'

/** Deeper sources are refused: whoever goes through one calls itself once for each level. */
const NESTING_MAX = 1_000

/** What is assigned to a name or a member, as a place in the source. */
export interface Definition {
  /** `argument` is the one that a function is called with; `unknown` is computed or taken out of a list. */
  kind: 'value' | 'type' | 'argument' | 'import' | 'unknown'
  node: Node
  scope: Scope
  /** The members to read from it, one after another: `['a', 'b']` for `const { a: { b } } = …`. */
  path: readonly string[]
  /** Of an argument: its position. */
  index?: number
  /** Of an import. */
  from?: Import
}

export interface Import {
  module: string
  /** What the module exports it as; `*` for all of it. */
  name: string
}

/** The names that code sees, and what `this` is there. */
export interface Scope {
  source: Source
  /** Variables, parameters, imports and types. */
  names: Map<string, Definition[]>
  parent: Scope | undefined
  /** The class whose instance `this` is. */
  self: Members | undefined
  fn: FunctionInfo | undefined
  /** Set for one branch of an `if` or of a conditional expression, `<node>:<index>`: of two branches of one node at most one runs. */
  branch?: string
}

export interface Expression {
  node: Node
  scope: Scope
}

export interface FunctionInfo extends Expression {
  kind: 'function'
  /** Of its results. */
  returns: Definition[]
}

/** What has members: a class, which stands for its instances, too, an object literal, a type, or a file with its exports. */
export interface Members extends Expression {
  kind: 'members'
  node: Class | ObjectExpression | TSInterfaceDeclaration | TSTypeLiteral | Program
  members: Map<string, Definition[]>
  /** Where the members come from that it has not itself: what it extends, what is spread into it, `export *`. */
  others: Definition[]
}

export interface Call extends Expression {
  node: CallExpression | NewExpression
}

/** A source file, with all that is declared and done in it. */
export interface Source {
  /** Absolute. */
  file: string
  syntax: Syntax
  root: Scope
  /** Its exports. */
  module: Members
  calls: Call[]
  /** Templates with a tag before them. */
  templates: Expression[]
  /** The arguments of `import(…)`. */
  dynamicImports: Expression[]
  functions: Map<Node, FunctionInfo>
  members: Map<Node, Members>
  assignments: Assignment[]
}

/** To a member. */
export interface Assignment {
  object: Expression
  key: string
  definition: Definition
}

/** @throws RangeError for a source that is nested too deeply */
export function readScopes(file: string, syntax: Syntax): Source {
  const source = {
    file,
    syntax,
    calls: [],
    templates: [],
    dynamicImports: [],
    functions: new Map(),
    members: new Map(),
    assignments: [],
  } as Omit<Source, 'root' | 'module'> as Source
  source.root = { source, names: new Map(), parent: undefined, self: undefined, fn: undefined }
  source.module = membersOf(syntax.program, source.root)
  new ScopeReader(source).read(syntax.program)
  return source
}

/** What the name is for code in that scope; undefined when no code of the file declares it. */
export function lookup(scope: Scope, name: string): Definition[] | undefined {
  for (let at: Scope | undefined = scope; at; at = at.parent) {
    const found = at.names.get(name)
    if (found) return found
  }
  return undefined
}

/** Where the name comes from, when it is imported. */
export function importOf(scope: Scope, name: string): Import | undefined {
  return lookup(scope, name)?.find(({ from }) => from)?.from
}

/** The absolute path of the file that a specifier in `file` refers to; undefined when it is not relative. */
export const relativeTarget = (file: string, specifier: string): string | undefined =>
  specifier.startsWith('.') ? path.resolve(path.dirname(file), specifier) : undefined

/** The branches that code of the scope stands in. */
export function branchesOf(scope: Scope): string[] {
  const branches: string[] = []
  for (let at: Scope | undefined = scope; at; at = at.parent) if (at.branch) branches.push(at.branch)
  return branches
}

/** True when the two stand in different branches of one `if`: never both run. */
export function excludeEachOther(some: readonly string[], others: readonly string[]): boolean {
  const chosen = new Map(others.map((branch) => branch.split(':') as [string, string]))
  return some.some((branch) => {
    const [of, index] = branch.split(':') as [string, string]
    return chosen.has(of) && chosen.get(of) !== index
  })
}

class ScopeReader {
  readonly #source: Source
  /** Assignments to names, which may be declared behind them. */
  readonly #later: Array<{ scope: Scope; name: string; taken: readonly Definition[] }> = []
  #depth = 0

  constructor(source: Source) {
    this.#source = source
  }

  read(program: Program): void {
    this.#visit(program, this.#source.root)
    for (const { scope, name, taken } of this.#later) lookup(scope, name)?.push(...taken)
    this.#readExports(program)
  }

  #visit(node: Node, scope: Scope): void {
    if (++this.#depth > NESTING_MAX) throw new RangeError('it is nested too deeply')
    if (!this.#visitWhole(node, scope)) {
      this.#record(node, scope)
      this.#visitChildren(node, scope)
    }
    this.#depth--
  }

  /** @returns true for an import, a type, and for what opens scopes: it is then visited whole */
  #visitWhole(node: Node, scope: Scope): boolean {
    switch (node.type) {
      case 'ImportDeclaration':
        for (const each of node.specifiers) {
          const name =
            each.type === 'ImportSpecifier'
              ? nameOf(each.imported)
              : each.type === 'ImportDefaultSpecifier'
                ? 'default'
                : '*'
          this.#declare(each.local.name, scope).push(imported(each, scope, node.source.value, name))
        }
        return true
      case 'FunctionDeclaration':
      case 'FunctionExpression':
        if (node.type === 'FunctionDeclaration' && node.id)
          this.#declare(node.id.name, scope).push(defined(node, scope))
        this.#visitFunction(node, scope, undefined)
        return true
      case 'ArrowFunctionExpression':
        this.#visitFunction(node, scope, scope.self)
        return true
      case 'ClassDeclaration':
      case 'ClassExpression':
        this.#visitClass(node, scope)
        return true
      case 'TSInterfaceDeclaration':
        this.#declare(node.id.name, scope).push(typed(node, scope))
        return true
      case 'TSTypeAliasDeclaration':
        this.#declare(node.id.name, scope).push(typed(node.typeAnnotation, scope))
        return true
      case 'IfStatement':
      case 'ConditionalExpression':
        this.#visit(node.test, scope)
        this.#visit(node.consequent, { ...inner(scope), branch: `${node.start}:0` })
        if (node.alternate) this.#visit(node.alternate, { ...inner(scope), branch: `${node.start}:1` })
        return true
      case 'ForOfStatement': {
        const loop = inner(scope)
        const variable = node.left.type === 'VariableDeclaration' ? node.left.declarations[0]?.id : undefined
        const list = unwrap(node.right)
        // The name may be each of the listed values.
        if (variable?.type === 'Identifier' && list.type === 'ArrayExpression') {
          const name = this.#declare(variable.name, loop)
          for (const each of list.elements) if (each) name.push(defined(each, scope))
        }
        this.#visitChildren(node, loop)
        return true
      }
      case 'BlockStatement':
      case 'ForStatement':
      case 'ForInStatement':
      case 'SwitchStatement':
      case 'CatchClause':
        this.#visitChildren(node, inner(scope))
        return true
      default:
        return node.type.startsWith('TS') && !('expression' in node)
    }
  }

  #record(node: Node, scope: Scope): void {
    switch (node.type) {
      case 'VariableDeclaration':
        for (const { id, init } of node.declarations) {
          this.#bind(id, node.kind === 'var' ? functionScope(scope) : scope, init && defined(init, scope))
        }
        return
      case 'AssignmentExpression': {
        const replaces = ['=', '??=', '||=', '&&='].includes(node.operator)
        this.#assign(node.left, replaces ? defined(node.right, scope) : unknown(node, scope), scope)
        return
      }
      case 'UpdateExpression':
        this.#assign(node.argument, unknown(node, scope), scope)
        return
      case 'ReturnStatement':
        if (node.argument) scope.fn?.returns.push(defined(node.argument, scope))
        return
      case 'ObjectExpression': {
        const { members, others } = membersOf(node, scope)
        for (const each of node.properties) {
          const key = keyOf(each)
          if (each.type === 'SpreadElement') others.push(defined(each.argument, scope))
          else if (key && each.kind === 'init') list(members, key).push(defined(each.value, scope))
        }
        return
      }
      case 'ImportExpression':
        this.#source.dynamicImports.push({ node: node.source, scope })
        return
      case 'TaggedTemplateExpression':
        this.#source.templates.push({ node, scope })
        return
      case 'CallExpression':
      case 'NewExpression':
        this.#source.calls.push({ node, scope })
    }
  }

  #readExports({ body }: Program): void {
    const { root: scope, module } = this.#source
    const add = (name: string, definition: Definition): void => void list(module.members, name).push(definition)
    for (const node of body) {
      if (node.type === 'ExportDefaultDeclaration') add('default', defined(node.declaration, scope))
      else if (node.type === 'ExportAllDeclaration') {
        const all = imported(node, scope, node.source.value, '*')
        if (node.exported) add(nameOf(node.exported), all)
        else module.others.push(all)
      } else if (node.type === 'ExportNamedDeclaration') {
        for (const { local, exported } of node.specifiers) {
          add(
            nameOf(exported),
            node.source ? imported(local, scope, node.source.value, nameOf(local)) : defined(local, scope),
          )
        }
        const { declaration } = node
        const ids = declaration?.type === 'VariableDeclaration' ? declaration.declarations.map(({ id }) => id) : []
        if (declaration && 'id' in declaration && declaration.id) ids.push(declaration.id as (typeof ids)[0])
        for (const id of ids) if (id.type === 'Identifier') add(id.name, defined(id, scope))
      }
    }
  }

  #visitChildren(node: Node, scope: Scope): void {
    forEachChild(node, (child) => this.#visit(child, scope))
  }

  #declare(name: string, scope: Scope): Definition[] {
    return list(scope.names, name)
  }

  /** Declares each name of a pattern, with what it takes out of what is assigned to the whole. */
  #bind(pattern: Node, scope: Scope, ...from: Array<Definition | null>): void {
    const annotation = (pattern as { typeAnnotation?: { typeAnnotation: TSType } | null }).typeAnnotation
    const definitions = from.filter((each) => each !== null)
    if (annotation) definitions.push(typed(annotation.typeAnnotation, scope))
    if (pattern.type === 'Identifier') this.#declare(pattern.name, scope)
    for (const { part, taken } of partsOf(pattern, definitions))
      if (part.type === 'Identifier') this.#declare(part.name, scope).push(...taken)
  }

  #assign(target: Node, definition: Definition, scope: Scope): void {
    for (const { part, taken } of partsOf(unwrap(target), [definition])) {
      if (part.type === 'Identifier') this.#later.push({ scope, name: part.name, taken })
      const key = keyOf(part)
      if (part.type !== 'MemberExpression' || key === undefined) continue
      const object = { node: part.object, scope }
      this.#source.assignments.push(...taken.map((each) => ({ object, key, definition: each })))
    }
  }

  #visitFunction(node: FunctionNode | ArrowFunctionExpression, outer: Scope, self: Members | undefined): void {
    const scope: Scope = { ...inner(outer), self }
    const fn: FunctionInfo = { kind: 'function', node, scope, returns: [] }
    scope.fn = fn
    this.#source.functions.set(node, fn)
    node.params.forEach((param, index) => {
      const pattern: Node = param.type === 'TSParameterProperty' ? param.parameter : param
      this.#bind(pattern, scope, { kind: 'argument', node, scope, index, path: [] })
      this.#visitChildren(pattern, scope)
    })
    if (node.body?.type === 'BlockStatement') this.#visitChildren(node.body, scope)
    else if (node.body) {
      fn.returns.push(defined(node.body, scope))
      this.#visit(node.body, scope)
    }
  }

  #visitClass(node: Class, outer: Scope): void {
    const scope = inner(outer)
    const self = membersOf(node, scope)
    scope.self = self
    if (node.id) {
      const place = node.type === 'ClassDeclaration' ? outer : scope
      this.#declare(node.id.name, place).push(defined(node, outer))
    }
    if (node.superClass) {
      self.others.push(defined(node.superClass, outer))
      this.#visit(node.superClass, outer)
    }
    for (const each of node.body.body) {
      const key = keyOf(each)
      if (each.type === 'MethodDefinition') {
        this.#visitFunction(each.value, scope, self)
        if (key && each.kind !== 'get' && each.kind !== 'set') list(self.members, key).push(defined(each.value, scope))
      } else if (each.type === 'PropertyDefinition') {
        const type = each.typeAnnotation?.typeAnnotation
        if (key && type) list(self.members, key).push(typed(type, scope))
        if (key && each.value) list(self.members, key).push(defined(each.value, scope))
        if (each.value) this.#visit(each.value, scope)
      } else this.#visit(each, scope)
    }
  }
}

/** Every part of a pattern that can be assigned to, with what it takes of what is assigned to the whole. */
function partsOf(pattern: Node, from: readonly Definition[]): Array<{ part: Node; taken: readonly Definition[] }> {
  const unknowns = from.map((one) => unknown(one.node, one.scope))
  switch (pattern.type) {
    case 'AssignmentPattern':
      return partsOf(pattern.left, [...from, ...(from[0] ? [defined(pattern.right, from[0].scope)] : [])])
    case 'RestElement':
      return partsOf(pattern.argument, from)
    case 'ArrayPattern':
      return pattern.elements.flatMap((part) => (part ? partsOf(part, unknowns) : []))
    case 'ObjectPattern':
      return pattern.properties.flatMap((part) => {
        if (part.type !== 'Property') return partsOf(part, from)
        const key = keyOf(part)
        return partsOf(part.value, key ? from.map((one) => ({ ...one, path: [...one.path, key] })) : unknowns)
      })
    default:
      return [{ part: pattern, taken: from }]
  }
}

/** What an interface or a type literal says of its members. */
export function typeMembers(node: TSInterfaceDeclaration | TSTypeLiteral, scope: Scope): Members {
  const known = scope.source.members.get(node)
  if (known) return known
  const info = membersOf(node, scope)
  for (const each of node.type === 'TSTypeLiteral' ? node.members : node.body.body) {
    const key = keyOf(each)
    const type = each.type === 'TSPropertySignature' ? each.typeAnnotation?.typeAnnotation : undefined
    if (key && type) list(info.members, key).push(typed(type, scope))
  }
  if (node.type === 'TSInterfaceDeclaration') info.others.push(...node.extends.map((each) => typed(each, scope)))
  return info
}

function membersOf(node: Members['node'], scope: Scope): Members {
  const made: Members = { kind: 'members', node, scope, members: new Map(), others: [] }
  scope.source.members.set(node, made)
  return made
}

export const defined = (node: Node, scope: Scope): Definition => ({ kind: 'value', node, scope, path: [] })
const typed = (node: Node, scope: Scope): Definition => ({ ...defined(node, scope), kind: 'type' })
export const imported = (node: Node, scope: Scope, module: string, name: string): Definition => ({
  ...defined(node, scope),
  kind: 'import',
  from: { module, name },
})
const unknown = (node: Node, scope: Scope): Definition => ({ kind: 'unknown', node, scope, path: [] })

function inner(parent: Scope): Scope {
  const { source, self, fn } = parent
  return { source, names: new Map(), parent, self, fn }
}

/** The scope that a `var` belongs to. */
function functionScope(scope: Scope): Scope {
  let at = scope
  while (at.parent && at.parent.fn === at.fn) at = at.parent
  return at
}

/** The list under that key, made when there is none. */
export function list<Key, Item>(lists: Map<Key, Item[]>, key: Key): Item[] {
  const found = lists.get(key) ?? []
  lists.set(key, found)
  return found
}

function nameOf(name: { type: string; name?: string; value?: string }): string {
  return name.name ?? name.value ?? ''
}

/** All that is reached, what it begins with included. */
export function reached<Item>(from: Iterable<Item>, next: (item: Item) => Iterable<Item>): Set<Item> {
  const all = new Set(from)
  // A set takes more while it is gone through.
  for (const item of all) for (const each of next(item)) all.add(each)
  return all
}
