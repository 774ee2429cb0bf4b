import type {
  CallExpression,
  Class,
  NewExpression,
  Node,
  ObjectExpression,
  TSInterfaceDeclaration,
  TSType,
  TSTypeAliasDeclaration,
} from 'oxc-parser'
import type { MemberSummary } from './summary.ts'

/**
 * The locations of one file and the assignments between them. Each variable, field and property is a location.
 * The order of statements and their branches do not count: a location holds every value that is ever assigned to it.
 */
export interface FlowGraph {
  root: Scope
  assignments: Assignment[]
  calls: Call[]
  /** Templates with a tag before them. */
  templates: Expression[]
  /** The arguments of `import(…)`. */
  dynamicImports: Expression[]
  functions: Map<Node, FunctionInfo>
  classes: Map<Node, ClassInfo>
  objects: Map<Node, ObjectInfo>
  /** Interfaces and type aliases by name, in whatever scope they are declared. */
  types: Map<string, TSInterfaceDeclaration | TSTypeAliasDeclaration>
  /** Variables and parameters with a type annotation. */
  annotated: Array<{ target: Location | Node; type: TSType; scope: Scope }>
  defaultExport: Expression | undefined
}

/** The names that code sees, and what `this` is there. */
export interface Scope {
  names: Map<string, Location>
  parent: Scope | undefined
  /** The class whose instance `this` is. */
  thisClass: ClassInfo | undefined
  fn: FunctionInfo | undefined
  /** Set for one branch of an `if` or of a conditional expression: at most one branch of that node runs. */
  branch?: { of: Node; index: number }
}

export interface Expression {
  node: Node
  scope: Scope
}

/** A variable, a field, a property, or what a function returns. */
export interface Location {
  /** The expressions that are assigned to it as a whole. */
  definitions: Expression[]
  /** True when it may hold values that no definition shows. */
  opaque: boolean
  /** Set when it is an import. */
  imported: { module: string; name: string } | undefined
  /** The values that may be in it, as far as the analysis has come. */
  values: Set<Value>
}

/** A value that leads to a tool. There is one object for each value, so that a set holds it once. */
export type Value =
  /** The argument of the plugin's function, or of its constructor. */
  | { kind: 'tools' }
  | { kind: 'tool'; tool: string }
  | { kind: 'method'; tool: string; method: string }
  | { kind: 'instance'; info: ClassInfo }
  | { kind: 'class'; info: ClassInfo }
  | { kind: 'function'; info: FunctionInfo }
  | { kind: 'object'; info: ObjectInfo }
  /** A value of another file, or of a type. */
  | { kind: 'summary'; summary: MemberSummary }

export interface Assignment {
  /** A pattern, an expression that can be assigned to, or a location. */
  target: Node | Location
  /** Undefined when the new value is computed from the old one. */
  source: Expression | undefined
  scope: Scope
}

export interface Call {
  node: CallExpression | NewExpression
  scope: Scope
}

export interface FunctionInfo {
  node: Node
  params: Node[]
  scope: Scope
  returns: Location
}

export interface ClassInfo {
  node: Class
  scope: Scope
  members: Map<string, Location>
  construct: FunctionInfo | undefined
}

export interface ObjectInfo {
  node: ObjectExpression
  members: Map<string, Location>
  /** The values that are spread into it. */
  spread: Location
}

export function newLocation(): Location {
  return { definitions: [], opaque: false, imported: undefined, values: new Set() }
}

export function isLocation(target: Node | Location): target is Location {
  return 'values' in target
}

/** The location of that name, made when there is none. */
export function locationIn(locations: Map<string, Location>, name: string): Location {
  let location = locations.get(name)
  if (!location) {
    location = newLocation()
    locations.set(name, location)
  }
  return location
}

export function lookup(scope: Scope, name: string): Location | undefined {
  for (let at: Scope | undefined = scope; at; at = at.parent) {
    const location = at.names.get(name)
    if (location) return location
  }
  return undefined
}
