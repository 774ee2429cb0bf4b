import type {
  ArrowFunctionExpression,
  Class,
  ForOfStatement,
  Function as FunctionNode,
  ImportDeclarationSpecifier,
  MethodDefinition,
  Node,
  ObjectExpression,
  Program,
  PropertyDefinition,
  TSType,
} from 'oxc-parser'
import { forEachChild, staticKey, unwrap } from '../syntax.ts'
import {
  type ClassInfo,
  type FlowGraph,
  type FunctionInfo,
  type Location,
  locationIn,
  newLocation,
  type ObjectInfo,
  type Scope,
} from './graph.ts'

export function buildFlowGraph(program: Program): FlowGraph {
  const root: Scope = { names: new Map(), parent: undefined, thisClass: undefined, fn: undefined }
  const graph: FlowGraph = {
    root,
    assignments: [],
    calls: [],
    templates: [],
    dynamicImports: [],
    functions: new Map(),
    classes: new Map(),
    objects: new Map(),
    types: new Map(),
    annotated: [],
    defaultExport: undefined,
  }
  new GraphBuilder(graph).visit(program, root)
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

class GraphBuilder {
  readonly #graph: FlowGraph

  constructor(graph: FlowGraph) {
    this.#graph = graph
  }

  visit(node: Node, scope: Scope): void {
    if (this.#visitDeclaration(node, scope) || this.#visitInnerScope(node, scope)) return
    if (node.type.startsWith('TS') && !VALUE_WRAPPERS.has(node.type)) return
    this.#record(node, scope)
    this.#visitChildren(node, scope)
  }

  /** @returns true for an import, a function, a class or a type, which is then visited whole */
  #visitDeclaration(node: Node, scope: Scope): boolean {
    switch (node.type) {
      case 'ImportDeclaration':
        for (const specifier of node.specifiers) {
          const location = this.#declare(specifier.local.name, scope)
          location.imported = { module: node.source.value, name: importedName(specifier) }
        }
        return true
      case 'FunctionDeclaration':
      case 'FunctionExpression':
        if (node.type === 'FunctionDeclaration' && node.id)
          this.#assign(this.#declare(node.id.name, scope), node, scope)
        this.#visitFunction(node, scope, undefined)
        return true
      case 'ArrowFunctionExpression':
        this.#visitFunction(node, scope, scope.thisClass)
        return true
      case 'ClassDeclaration':
      case 'ClassExpression':
        this.#visitClass(node, scope)
        return true
      case 'TSInterfaceDeclaration':
      case 'TSTypeAliasDeclaration':
        this.#graph.types.set(node.id.name, node)
        return true
      default:
        return false
    }
  }

  /** @returns true for a statement or expression that opens scopes, which is then visited whole */
  #visitInnerScope(node: Node, scope: Scope): boolean {
    switch (node.type) {
      case 'IfStatement':
      case 'ConditionalExpression':
        this.visit(node.test, scope)
        this.visit(node.consequent, branchScope(scope, node, 0))
        if (node.alternate) this.visit(node.alternate, branchScope(scope, node, 1))
        return true
      case 'ForOfStatement':
        this.#visitChildren(node, this.#loopScope(node, scope))
        return true
      case 'BlockStatement':
      case 'ForStatement':
      case 'ForInStatement':
      case 'SwitchStatement':
      case 'CatchClause':
        this.#visitChildren(node, innerScope(scope))
        return true
      default:
        return false
    }
  }

  #record(node: Node, scope: Scope): void {
    const graph = this.#graph
    switch (node.type) {
      case 'ExportDefaultDeclaration':
        graph.defaultExport = { node: node.declaration, scope }
        return
      case 'ExportNamedDeclaration':
        for (const { local, exported } of node.source ? [] : node.specifiers) {
          const isDefault = exported.type === 'Identifier' && exported.name === 'default'
          if (isDefault) graph.defaultExport = { node: local, scope }
        }
        return
      case 'VariableDeclaration':
        for (const { id, init } of node.declarations) {
          this.#declareNames(id, node.kind === 'var' ? functionScope(scope) : scope)
          if (init) graph.assignments.push({ target: id, source: { node: init, scope }, scope })
        }
        return
      case 'AssignmentExpression': {
        const replaces = ['=', '??=', '||=', '&&='].includes(node.operator)
        const source = replaces ? { node: node.right, scope } : undefined
        graph.assignments.push({ target: node.left, source, scope })
        return
      }
      case 'UpdateExpression':
        graph.assignments.push({ target: node.argument, source: undefined, scope })
        return
      case 'ReturnStatement':
        if (scope.fn && node.argument) this.#assign(scope.fn.returns, node.argument, scope)
        return
      case 'ObjectExpression':
        this.#recordObject(node, scope)
        return
      case 'ImportExpression':
        graph.dynamicImports.push({ node: node.source, scope })
        return
      case 'TaggedTemplateExpression':
        graph.templates.push({ node, scope })
        return
      case 'CallExpression':
      case 'NewExpression':
        graph.calls.push({ node, scope })
    }
  }

  /** `for (const name of ['a', 'b'])`: the name may be each of them. */
  #loopScope(node: ForOfStatement, outer: Scope): Scope {
    const scope = innerScope(outer)
    const variable = node.left.type === 'VariableDeclaration' ? node.left.declarations[0]?.id : undefined
    const list = unwrap(node.right)
    if (variable?.type === 'Identifier' && list.type === 'ArrayExpression') {
      const location = this.#declare(variable.name, scope)
      for (const element of list.elements) {
        if (element && element.type !== 'SpreadElement') this.#assign(location, element, outer)
        else location.opaque = true
      }
    }
    return scope
  }

  #visitChildren(node: Node, scope: Scope): void {
    forEachChild(node, (child) => this.visit(child, scope))
  }

  #declare(name: string, scope: Scope): Location {
    return locationIn(scope.names, name)
  }

  #assign(target: Location, node: Node, scope: Scope): void {
    this.#graph.assignments.push({ target, source: { node, scope }, scope })
  }

  /** Declares each name of a pattern. */
  #declareNames(pattern: Node, scope: Scope): void {
    switch (pattern.type) {
      case 'Identifier':
        this.#annotate(this.#declare(pattern.name, scope), pattern, scope)
        return
      case 'AssignmentPattern':
        this.#declareNames(pattern.left, scope)
        return
      case 'RestElement':
        this.#declareNames(pattern.argument, scope)
        return
      case 'ArrayPattern':
        for (const element of pattern.elements) if (element) this.#declareNames(element, scope)
        return
      case 'ObjectPattern':
        this.#annotate(pattern, pattern, scope)
        for (const property of pattern.properties) {
          this.#declareNames(property.type === 'Property' ? property.value : property, scope)
        }
    }
  }

  #annotate(target: Location | Node, pattern: Node, scope: Scope): void {
    const annotation = (pattern as { typeAnnotation?: { typeAnnotation: TSType } | null }).typeAnnotation
    if (annotation) this.#graph.annotated.push({ target, type: annotation.typeAnnotation, scope })
  }

  #visitFunction(
    node: FunctionNode | ArrowFunctionExpression,
    outer: Scope,
    thisClass: ClassInfo | undefined,
  ): FunctionInfo {
    const scope = innerScope(outer)
    const info: FunctionInfo = { node, params: [], scope, returns: newLocation() }
    scope.thisClass = thisClass
    scope.fn = info
    this.#graph.functions.set(node, info)
    for (const param of node.params) {
      const pattern: Node = param.type === 'TSParameterProperty' ? param.parameter : param
      this.#declareNames(pattern, scope)
      for (const location of scope.names.values()) location.opaque = true
      info.params.push(pattern)
      if (pattern.type === 'AssignmentPattern') {
        this.#graph.assignments.push({ target: pattern.left, source: { node: pattern.right, scope }, scope })
      }
      this.#visitChildren(pattern, scope)
    }
    if (!node.body) return info
    if (node.body.type === 'BlockStatement') this.#visitChildren(node.body, scope)
    else {
      this.#assign(info.returns, node.body, scope)
      this.visit(node.body, scope)
    }
    return info
  }

  #visitClass(node: Class, outer: Scope): void {
    const scope = innerScope(outer)
    const info: ClassInfo = { node, scope, members: new Map(), construct: undefined }
    scope.thisClass = info
    this.#graph.classes.set(node, info)
    if (node.id)
      this.#assign(this.#declare(node.id.name, node.type === 'ClassDeclaration' ? outer : scope), node, outer)
    if (node.superClass) this.visit(node.superClass, outer)
    for (const element of node.body.body) {
      if (element.type === 'MethodDefinition') this.#visitMethod(element, info)
      else if (element.type === 'PropertyDefinition') this.#visitField(element, info)
      else this.visit(element, scope)
    }
  }

  #visitMethod({ kind, key: keyNode, computed, value }: MethodDefinition, info: ClassInfo): void {
    const key = staticKey(keyNode, computed)
    const method = this.#visitFunction(value, info.scope, info)
    if (kind === 'constructor') info.construct = method
    else if (key && kind === 'method') this.#assign(locationIn(info.members, key), value, info.scope)
    else if (key && kind === 'get') {
      // Reading a getter reads what it returns.
      for (const assignment of this.#graph.assignments) {
        if (assignment.target === method.returns) assignment.target = locationIn(info.members, key)
      }
    }
  }

  #visitField(field: PropertyDefinition, { members, scope }: ClassInfo): void {
    const key = staticKey(field.key, field.computed)
    if (key) {
      const location = locationIn(members, key)
      this.#annotate(location, field, scope)
      if (field.value) this.#assign(location, field.value, scope)
    }
    if (field.value) this.visit(field.value, scope)
  }

  #recordObject(node: ObjectExpression, scope: Scope): void {
    const info: ObjectInfo = { node, members: new Map(), spread: newLocation() }
    this.#graph.objects.set(node, info)
    for (const property of node.properties) {
      if (property.type === 'SpreadElement') this.#assign(info.spread, property.argument, scope)
      else {
        const key = staticKey(property.key, property.computed)
        if (key && property.kind === 'init') this.#assign(locationIn(info.members, key), property.value, scope)
      }
    }
  }
}

function innerScope(parent: Scope): Scope {
  return { names: new Map(), parent, thisClass: parent.thisClass, fn: parent.fn }
}

function branchScope(parent: Scope, of: Node, index: number): Scope {
  return { ...innerScope(parent), branch: { of, index } }
}

/** The scope that a `var` belongs to. */
function functionScope(scope: Scope): Scope {
  let at = scope
  while (at.parent && at.parent.fn === at.fn) at = at.parent
  return at
}

/** `*` for all of the module. */
function importedName(specifier: ImportDeclarationSpecifier): string {
  if (specifier.type === 'ImportDefaultSpecifier') return 'default'
  if (specifier.type === 'ImportNamespaceSpecifier') return '*'
  return specifier.imported.type === 'Literal' ? specifier.imported.value : specifier.imported.name
}
