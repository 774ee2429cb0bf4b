import type {
  ArrowFunctionExpression,
  CallExpression,
  Class,
  ForOfStatement,
  Function as FunctionNode,
  ImportDeclarationSpecifier,
  NewExpression,
  Node,
  ObjectExpression,
  Program,
  TSInterfaceDeclaration,
  TSType,
  TSTypeAliasDeclaration,
} from 'oxc-parser'
import { forEachChild, staticKey, unwrap } from './syntax.ts'

/**
 * Who may hold what in one file: every variable, field and property is a cell, every assignment an edge.
 * Order and branches are left out of account: a cell holds all that is ever assigned to it.
 */
export interface FlowGraph {
  root: Frame
  assignments: Assignment[]
  calls: Call[]
  /** What `import(…)` is given. */
  dynamicImports: Source[]
  functions: Map<Node, FunctionInfo>
  classes: Map<Node, ClassInfo>
  objects: Map<Node, ObjectInfo>
  /** Interfaces and type aliases by name, wherever they stand. */
  types: Map<string, TSInterfaceDeclaration | TSTypeAliasDeclaration>
  /** Variables and parameters with a type annotation. */
  annotated: Array<{ cell: Cell | Node; type: TSType; frame: Frame }>
  defaultExport: Source | undefined
}

/** Where code stands: the names that it sees, and what `this` is. */
export interface Frame {
  names: Map<string, Cell>
  parent: Frame | undefined
  self: ClassInfo | undefined
  fn: FunctionInfo | undefined
  /** When it is one arm of an `if` or of a conditional expression: no other arm of that node runs with it. */
  arm?: { of: Node; index: number }
}

/** An expression and where it stands. */
export interface Source {
  node: Node
  frame: Frame
}

export interface Cell {
  /** What is assigned to it as a whole. */
  sources: Source[]
  /** True when more may be in it than its sources say. */
  opaque: boolean
  /** Set when it is an import. */
  imported: { module: string; name: string } | undefined
  values: Set<unknown>
}

export interface Assignment {
  /** A pattern, an expression that can be assigned to, or a cell. */
  target: Node | Cell
  /** Undefined: the new value is computed from the old one. */
  source: Source | undefined
  frame: Frame
}

export interface Call {
  node: CallExpression | NewExpression
  frame: Frame
}

export interface FunctionInfo {
  node: Node
  params: Node[]
  frame: Frame
  returns: Cell
}

export interface ClassInfo {
  node: Class
  frame: Frame
  members: Map<string, Cell>
  construct: FunctionInfo | undefined
}

export interface ObjectInfo {
  node: ObjectExpression
  members: Map<string, Cell>
  /** What is spread into it. */
  spread: Cell
}

export function newCell(): Cell {
  return { sources: [], opaque: false, imported: undefined, values: new Set() }
}

export function memberCell(members: Map<string, Cell>, name: string): Cell {
  let cell = members.get(name)
  if (!cell) {
    cell = newCell()
    members.set(name, cell)
  }
  return cell
}

export function lookup(frame: Frame, name: string): Cell | undefined {
  for (let at: Frame | undefined = frame; at; at = at.parent) {
    const cell = at.names.get(name)
    if (cell) return cell
  }
  return undefined
}

export function buildFlowGraph(program: Program): FlowGraph {
  const root: Frame = { names: new Map(), parent: undefined, self: undefined, fn: undefined }
  const graph: FlowGraph = {
    root,
    assignments: [],
    calls: [],
    dynamicImports: [],
    functions: new Map(),
    classes: new Map(),
    objects: new Map(),
    types: new Map(),
    annotated: [],
    defaultExport: undefined,
  }
  new Collector(graph).visit(program, root)
  return graph
}

const VALUE_WRAPPERS = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'TSTypeAssertion',
  'TSInstantiationExpression',
  'TSExportAssignment',
])

class Collector {
  readonly #graph: FlowGraph

  constructor(graph: FlowGraph) {
    this.#graph = graph
  }

  visit(node: Node, frame: Frame): void {
    switch (node.type) {
      case 'ImportDeclaration':
        for (const specifier of node.specifiers) {
          const cell = this.#declare(specifier.local.name, frame)
          cell.imported = { module: node.source.value, name: importedName(specifier) }
        }
        return
      case 'ExportDefaultDeclaration':
        this.#graph.defaultExport = { node: node.declaration, frame }
        break
      case 'ExportNamedDeclaration':
        for (const { local, exported } of node.source ? [] : node.specifiers) {
          const isDefault = exported.type === 'Identifier' && exported.name === 'default'
          if (isDefault) this.#graph.defaultExport = { node: local, frame }
        }
        break
      case 'FunctionDeclaration':
      case 'FunctionExpression':
        if (node.type === 'FunctionDeclaration' && node.id) this.#hold(this.#declare(node.id.name, frame), node, frame)
        this.#function(node, frame, undefined)
        return
      case 'ArrowFunctionExpression':
        this.#function(node, frame, frame.self)
        return
      case 'ClassDeclaration':
      case 'ClassExpression':
        this.#class(node, frame)
        return
      case 'IfStatement':
      case 'ConditionalExpression':
        this.visit(node.test, frame)
        this.visit(node.consequent, armFrame(frame, node, 0))
        if (node.alternate) this.visit(node.alternate, armFrame(frame, node, 1))
        return
      case 'ForOfStatement':
        this.#children(node, this.#loop(node, frame))
        return
      case 'TSInterfaceDeclaration':
      case 'TSTypeAliasDeclaration':
        this.#graph.types.set(node.id.name, node)
        return
      case 'BlockStatement':
      case 'ForStatement':
      case 'ForInStatement':
      case 'SwitchStatement':
      case 'CatchClause':
        this.#children(node, innerFrame(frame))
        return
      case 'VariableDeclaration':
        for (const { id, init } of node.declarations) {
          this.#declarePattern(id, node.kind === 'var' ? functionFrame(frame) : frame)
          if (init) this.#graph.assignments.push({ target: id, source: { node: init, frame }, frame })
        }
        break
      case 'AssignmentExpression': {
        const plain = ['=', '??=', '||=', '&&='].includes(node.operator)
        const source = plain ? { node: node.right, frame } : undefined
        this.#graph.assignments.push({ target: node.left, source, frame })
        break
      }
      case 'UpdateExpression':
        this.#graph.assignments.push({ target: node.argument, source: undefined, frame })
        break
      case 'ReturnStatement':
        if (frame.fn && node.argument) this.#hold(frame.fn.returns, node.argument, frame)
        break
      case 'ObjectExpression':
        this.#object(node, frame)
        break
      case 'ImportExpression':
        this.#graph.dynamicImports.push({ node: node.source, frame })
        break
      case 'CallExpression':
      case 'NewExpression':
        this.#graph.calls.push({ node, frame })
        break
      default:
        if (node.type.startsWith('TS') && !VALUE_WRAPPERS.has(node.type)) return
    }
    this.#children(node, frame)
  }

  /** `for (const name of ['a', 'b'])`: the name may be each of them. */
  #loop(node: ForOfStatement, outer: Frame): Frame {
    const frame = innerFrame(outer)
    const variable = node.left.type === 'VariableDeclaration' ? node.left.declarations[0]?.id : undefined
    const list = unwrap(node.right)
    if (variable?.type === 'Identifier' && list.type === 'ArrayExpression') {
      const cell = this.#declare(variable.name, frame)
      for (const element of list.elements) {
        if (element && element.type !== 'SpreadElement') this.#hold(cell, element, outer)
        else cell.opaque = true
      }
    }
    return frame
  }

  #children(node: Node, frame: Frame): void {
    forEachChild(node, (child) => this.visit(child, frame))
  }

  #declare(name: string, frame: Frame): Cell {
    return memberCell(frame.names, name)
  }

  #hold(target: Cell, node: Node, frame: Frame): void {
    this.#graph.assignments.push({ target, source: { node, frame }, frame })
  }

  /** Declares each name of a pattern. */
  #declarePattern(pattern: Node, frame: Frame): void {
    switch (pattern.type) {
      case 'Identifier':
        this.#annotate(this.#declare(pattern.name, frame), pattern, frame)
        return
      case 'AssignmentPattern':
        this.#declarePattern(pattern.left, frame)
        return
      case 'RestElement':
        this.#declarePattern(pattern.argument, frame)
        return
      case 'ArrayPattern':
        for (const element of pattern.elements) if (element) this.#declarePattern(element, frame)
        return
      case 'ObjectPattern':
        this.#annotate(pattern, pattern, frame)
        for (const property of pattern.properties) {
          this.#declarePattern(property.type === 'Property' ? property.value : property, frame)
        }
    }
  }

  #annotate(cell: Cell | Node, pattern: Node, frame: Frame): void {
    const annotation = (pattern as { typeAnnotation?: { typeAnnotation: TSType } | null }).typeAnnotation
    if (annotation) this.#graph.annotated.push({ cell, type: annotation.typeAnnotation, frame })
  }

  #function(node: FunctionNode | ArrowFunctionExpression, outer: Frame, self: ClassInfo | undefined): FunctionInfo {
    const frame = innerFrame(outer)
    const info: FunctionInfo = { node, params: [], frame, returns: newCell() }
    frame.self = self
    frame.fn = info
    this.#graph.functions.set(node, info)
    for (const param of node.params) {
      const pattern: Node = param.type === 'TSParameterProperty' ? param.parameter : param
      this.#declarePattern(pattern, frame)
      for (const cell of frame.names.values()) cell.opaque = true
      info.params.push(pattern)
      if (pattern.type === 'AssignmentPattern') {
        this.#graph.assignments.push({ target: pattern.left, source: { node: pattern.right, frame }, frame })
      }
      this.#children(pattern, frame)
    }
    if (!node.body) return info
    if (node.body.type === 'BlockStatement') this.#children(node.body, frame)
    else {
      this.#hold(info.returns, node.body, frame)
      this.visit(node.body, frame)
    }
    return info
  }

  #class(node: Class, outer: Frame): void {
    const frame = innerFrame(outer)
    const info: ClassInfo = { node, frame, members: new Map(), construct: undefined }
    frame.self = info
    this.#graph.classes.set(node, info)
    if (node.id) this.#hold(this.#declare(node.id.name, node.type === 'ClassDeclaration' ? outer : frame), node, outer)
    if (node.superClass) this.visit(node.superClass, outer)
    for (const element of node.body.body) {
      if (element.type === 'MethodDefinition') {
        const key = staticKey(element.key, element.computed)
        const method = this.#function(element.value, frame, info)
        if (element.kind === 'constructor') info.construct = method
        else if (key && element.kind === 'get') {
          // Reading a getter reads what it returns.
          for (const assignment of this.#graph.assignments) {
            if (assignment.target === method.returns) assignment.target = memberCell(info.members, key)
          }
        } else if (key && element.kind === 'method') this.#hold(memberCell(info.members, key), element.value, frame)
      } else if (element.type === 'PropertyDefinition') {
        const key = staticKey(element.key, element.computed)
        if (key) {
          const cell = memberCell(info.members, key)
          this.#annotate(cell, element, frame)
          if (element.value) this.#hold(cell, element.value, frame)
        }
        if (element.value) this.visit(element.value, frame)
      } else this.visit(element, frame)
    }
  }

  #object(node: ObjectExpression, frame: Frame): void {
    const info: ObjectInfo = { node, members: new Map(), spread: newCell() }
    this.#graph.objects.set(node, info)
    for (const property of node.properties) {
      if (property.type === 'SpreadElement') this.#hold(info.spread, property.argument, frame)
      else {
        const key = staticKey(property.key, property.computed)
        if (key && property.kind === 'init') this.#hold(memberCell(info.members, key), property.value, frame)
      }
    }
  }
}

function innerFrame(parent: Frame): Frame {
  return { names: new Map(), parent, self: parent.self, fn: parent.fn }
}

function armFrame(parent: Frame, of: Node, index: number): Frame {
  return { ...innerFrame(parent), arm: { of, index } }
}

/** The frame that a `var` belongs to. */
function functionFrame(frame: Frame): Frame {
  let at = frame
  while (at.parent && at.parent.fn === at.fn) at = at.parent
  return at
}

/** `*` for all of the module. */
function importedName(specifier: ImportDeclarationSpecifier): string {
  if (specifier.type === 'ImportDefaultSpecifier') return 'default'
  if (specifier.type === 'ImportNamespaceSpecifier') return '*'
  return specifier.imported.type === 'Literal' ? specifier.imported.value : specifier.imported.name
}
