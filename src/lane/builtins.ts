// Notices when a plugin replaces a builtin or pollutes a prototype, names it, and puts it back.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Debugger, Session } from 'node:inspector'
import { runInNewContext } from 'node:vm'
import type { Origin } from '../contracts/tracing.ts'
import { placeInSource, sourceMap } from '../core/errors/places.ts'

/** How often accessors and frozen objects are compared, too, milliseconds. */
const COMPARE_MS = 1000
/** Comparisons in one function: V8 folds them into constants as long as the function is not too large. */
const CHUNK = 200

/** Functions of Node on the global object that every answer needs. Others are replaced for good reasons: `fetch`, `console`. */
const NODE_NAMES = [
  ...['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate', 'queueMicrotask'],
  ...['structuredClone', 'Buffer', 'URL', 'URLSearchParams', 'TextEncoder', 'TextDecoder'],
  ...['AbortController', 'AbortSignal', 'EventTarget', 'Event'],
]
/** Where libraries set what they wish by design, and what no answer needs. */
const LEFT_OUT = new Set(['console', 'globalThis', 'undefined', 'NaN', 'Infinity', 'Intl', 'WebAssembly'])
const PREPARE = 'prepareStackTrace'

// Taken before plugins can replace them: this has to work where everything else does not.
const { apply, defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys, setPrototypeOf } =
  Reflect
const { create, isSealed } = Object
const { stringify } = JSON
const toText = String

/** An object of the language, or of Node, and what it is called. */
interface Owner {
  readonly name: string
  readonly object: object
  isSealed: boolean
  inherits: object | null
}

interface Property {
  readonly owner: Owner
  readonly key: PropertyKey
  /** Without a prototype: it may be polluted. */
  readonly descriptor: PropertyDescriptor
}

/** What was done to a builtin. `stack` names where the code stands that is there instead; empty where that is not known. */
export interface Change {
  readonly message: string
  readonly stack: string
}

/** The builtins of one thread, as they were when they were remembered last. It calls no method that a plugin could have replaced. */
export class Builtins {
  readonly #owners: readonly Owner[] = findOwners()
  #properties: Property[] = []
  #checks: readonly (() => boolean)[] = []
  /** Those of `Object.prototype`. */
  #keys: readonly PropertyKey[] = []
  /** Some were changed since, whatever they are now. */
  #isSpoilt = false
  /** Told once. @param origin who has run since they were looked at last; null where that is not known */
  onChange: (change: Change, origin: Origin | null) => void = () => {}

  /** Made before the first plugin is loaded: what plugins define on the global object is none of them. */
  constructor() {
    this.#remember()
  }

  /** From now on they are to stay as they are. */
  remember(): void {
    this.#remember()
    this.#keys = ownKeys(OBJECT.object)
    this.#checks = checksOf(this.#properties)
  }

  #remember(): void {
    this.#properties = []
    for (let n = 0; n < this.#owners.length; n++) {
      const owner = this.#owners[n]!
      owner.isSealed = isSealed(owner.object)
      owner.inherits = getPrototypeOf(owner.object)
      // Node loads what is behind some of its names when they are looked at.
      const keys = owner.object === globalThis ? GLOBAL_NAMES : ownKeys(owner.object)
      for (let k = 0; k < keys.length; k++) {
        const key = keys[k]!
        const descriptor = ownDescriptor(owner.object, key)
        if (descriptor === null || !isCompared(owner, key, descriptor)) continue
        this.#properties[this.#properties.length] = { owner, key, descriptor }
      }
    }
  }

  /**
   * True while every function is the one that it was, and objects and lists inherit nothing that a loop over them would meet. It takes some 50
   * nanoseconds: V8 assumes that builtins stay as they are, and throws this code away when one does not.
   */
  isIntact(): boolean {
    const checks = this.#checks
    try {
      for (let n = 0; n < checks.length; n++) if (!checks[n]!()) return false
    } catch {
      // A getter stands where nothing was.
      return false
    }
    return pollution() === null
  }

  /**
   * False from the first change on: what was computed since may be wrong, and nobody may have it. Asked before and after plugins run, and
   * before anything leaves the lane.
   * @param origin who alone has run since they were looked at last
   */
  isSound(origin: Origin | null = null): boolean {
    if (this.#isSpoilt) return false
    if (this.isIntact()) return true
    this.#spoil(origin)
    return false
  }

  #spoil(origin: Origin | null): void {
    this.#isSpoilt = true
    this.onChange(this.take() ?? UNKNOWN, origin)
  }

  /** Of functions that plugins have replaced while they boot: the first that does not do on a sample what the builtin does. Agents pass everything on. */
  firstBroken(): Change | null {
    if (pollution() !== null || hidden([]) !== null) return this.take()
    for (let n = 0; n < this.#properties.length; n++) {
      const property = this.#properties[n]!
      if (isReplaced(property) && !worksAsBefore(property)) return this.take(property)
    }
    return null
  }

  /** The first change, accessors and frozen objects included, and puts back all that was changed: the lane needs its builtins to leave. */
  take(first: Property | null = this.#firstReplaced()): Change | null {
    const added = pollution() ?? hidden(this.#keys)
    const turned = first === null && added === null ? this.#firstTurned() : null
    const sealed = first === null && added === null && turned === null ? this.#firstSealed() : null
    const now = first === null ? null : ownDescriptor(first.owner.object, first.key)
    this.#restore()
    if (first !== null) {
      const name = nameOf(first.owner.name, first.key)
      const code: unknown = now?.value ?? now?.get
      return {
        message: `${name} was ${now === null ? 'deleted' : 'replaced'}`,
        stack: typeof code === 'function' ? placeOf(name, code) : '',
      }
    }
    if (added !== null) return { message: `${nameOf(added.name, added.key)} was added: every object has it`, stack: '' }
    if (turned !== null) return { message: `${turned.name} inherits from another object`, stack: '' }
    return sealed === null ? null : { message: `${sealed.name} was frozen`, stack: '' }
  }

  #firstReplaced(): Property | null {
    for (let n = 0; n < this.#properties.length; n++) if (isReplaced(this.#properties[n]!)) return this.#properties[n]!
    return null
  }

  #firstTurned(): Owner | null {
    for (let n = 0; n < this.#owners.length; n++) {
      const owner = this.#owners[n]!
      if (getPrototypeOf(owner.object) !== owner.inherits) return owner
    }
    return null
  }

  #firstSealed(): Owner | null {
    for (let n = 0; n < this.#owners.length; n++) {
      const owner = this.#owners[n]!
      if (!owner.isSealed && isSealed(owner.object)) return owner
    }
    return null
  }

  #restore(): void {
    // First: a polluted `get` would spoil every descriptor.
    for (let n = 0; n < this.#owners.length; n++) {
      const owner = this.#owners[n]!
      if (getPrototypeOf(owner.object) !== owner.inherits) setPrototypeOf(owner.object, owner.inherits)
    }
    const next = () => pollution() ?? hidden(this.#keys)
    for (let added = next(); added !== null; added = next()) if (!deleteProperty(added.object, added.key)) break
    for (let n = 0; n < this.#properties.length; n++) {
      const { owner, key, descriptor } = this.#properties[n]!
      if (isReplaced(this.#properties[n]!)) defineProperty(owner.object, key, descriptor)
    }
  }

  /** Compares them regularly: a lane without requests may have timers. */
  watch(): void {
    const timer = setInterval(() => {
      if (this.look()) clearInterval(timer)
    }, COMPARE_MS).unref()
  }

  /** A complete comparison. True where something was changed, now or before. */
  look(): boolean {
    if (!this.isSound()) return true
    if (
      !this.#hasOtherAccessors() &&
      hidden(this.#keys) === null &&
      this.#firstTurned() === null &&
      this.#firstSealed() === null
    )
      return false
    this.#spoil(null)
    return true
  }

  #hasOtherAccessors(): boolean {
    for (let n = 0; n < this.#properties.length; n++)
      if (this.#properties[n]!.descriptor.get !== undefined && isReplaced(this.#properties[n]!)) return true
    return false
  }
}

/** It was put back before it could be named. */
const UNKNOWN: Change = { message: 'A builtin was replaced', stack: '' }

const OBJECT = { object: Object.prototype, name: 'Object.prototype' }
const LIST = { object: Array.prototype, name: 'Array.prototype' }
const NO_MEMBERS = {}
const NO_ITEMS: unknown[] = []

function pollution(): { object: object; name: string; key: string } | null {
  for (const key in NO_MEMBERS) return { object: OBJECT.object, name: OBJECT.name, key }
  for (const key in NO_ITEMS) return { object: LIST.object, name: LIST.name, key }
  return null
}

/** Names that the runtime, libraries and the language read where an object may have none: nothing may inherit them. */
const ABSENT = [
  ...['then', 'toJSON', 'status', 'body', 'headers', 'user', 'get', 'set', 'value', 'writable', 'enumerable'],
  ...['configurable', 'success', 'error', 'code', 'details', 'message', 'stack', 'name', 'id', 'type', 'data', 'file'],
  ...['head', 'length', 'key', 'path', 'method', 'query', 'params', 'hooks', 'owner', 'options', 'signal', 'issues'],
  ...['isForm', 'encoding', 'duplex', 'cache', 'done', 'next', 'retries', 'trace', 'kind', 'context', 'role', 'cause'],
]
/** What JSON and `await` look for in every value. */
const ABSENT_EVERYWHERE = ['then', 'toJSON']
const COMMON = [Array, String, Number, Boolean].map(({ name, prototype }) => ({
  object: prototype as object,
  name: `${name}.prototype`,
}))
const absent = [
  ...ABSENT.map((key) => ({ ...OBJECT, key })),
  ...COMMON.flatMap((owner) => ABSENT_EVERYWHERE.map((key) => ({ ...owner, key }))),
]

/** What was added so that no loop meets it. @param keys of `Object.prototype`; empty: whatever it has but for those that have to be absent */
function hidden(keys: readonly PropertyKey[]): { object: object; name: string; key: PropertyKey } | null {
  for (let n = 0; n < absent.length; n++)
    if (ownDescriptor(absent[n]!.object, absent[n]!.key) !== null) return absent[n]!
  const now = ownKeys(OBJECT.object)
  if (keys.length === 0 || now.length <= keys.length) return null
  for (let n = 0; n < now.length; n++) if (!isAmong(now[n]!, keys)) return { ...OBJECT, key: now[n]! }
  return null
}

function isAmong(key: PropertyKey, keys: readonly PropertyKey[]): boolean {
  for (let n = 0; n < keys.length; n++) if (keys[n] === key) return true
  return false
}

/** The global object, what the language has there, and whatever that inherits from. */
function findOwners(): Owner[] {
  const owners: Owner[] = []
  const add = (name: string, object: unknown): void => {
    const isOwner = (typeof object === 'object' && object !== null) || typeof object === 'function'
    if (!isOwner || object === globalThis || owners.some((owner) => owner.object === object)) return
    owners.push({ name, object, isSealed: false, inherits: null })
    add(`${name}.prototype`, ownDescriptor(object, 'prototype')?.value)
    add(`Object.getPrototypeOf(${name})`, getPrototypeOf(object))
  }
  for (const name of GLOBAL_NAMES) add(name, (globalThis as unknown as Record<string, unknown>)[name])
  // Without them no handler runs, and nothing reaches the primary.
  add('AsyncLocalStorage', AsyncLocalStorage)
  add('MessagePort', MessagePort)
  const hidden = {
    '[][Symbol.iterator]()': [][Symbol.iterator](),
    'new Map()[Symbol.iterator]()': new Map()[Symbol.iterator](),
    'new Set()[Symbol.iterator]()': new Set()[Symbol.iterator](),
    "''[Symbol.iterator]()": ''[Symbol.iterator](),
    "''.matchAll(/./g)": ''.matchAll(/./g),
    'function*': function* () {},
    'async function': async () => {},
    'async function*': async function* () {},
  }
  for (const [name, object] of Object.entries(hidden)) add(`Object.getPrototypeOf(${name})`, getPrototypeOf(object))
  owners.push({ name: '', object: globalThis, isSealed: false, inherits: null })
  return owners
}

/** A new context has what the language has, and nothing else. */
const GLOBAL_NAMES = [...(runInNewContext('Object.getOwnPropertyNames(globalThis)') as string[]), ...NODE_NAMES].filter(
  (name) => !LEFT_OUT.has(name),
)
function isCompared({ object }: Owner, key: PropertyKey, { value, get }: PropertyDescriptor): boolean {
  if (object === globalThis) return get === undefined
  return (typeof value === 'function' && key !== PREPARE) || get !== undefined
}

function ownDescriptor(object: object, key: PropertyKey): PropertyDescriptor | null {
  const found = getOwnPropertyDescriptor(object, key)
  if (found === undefined) return null
  const descriptor = create(null) as Record<string, unknown>
  const names = ownKeys(found) as string[]
  for (let n = 0; n < names.length; n++) descriptor[names[n]!] = found[names[n] as keyof PropertyDescriptor]
  return descriptor
}

function isReplaced({ owner, key, descriptor }: Property): boolean {
  const isFunction = descriptor.get === undefined
  if (isFunction && (owner.object as Record<PropertyKey, unknown>)[key] === descriptor.value) return false
  const now = ownDescriptor(owner.object, key)
  return now === null || now.value !== descriptor.value || now.get !== descriptor.get || now.set !== descriptor.set
}

/** Compares the properties that have values, some in each function: with the names written out, V8 knows each of them. */
function checksOf(properties: readonly Property[]): (() => boolean)[] {
  const checks: (() => boolean)[] = []
  const withValue = properties.filter(({ descriptor }) => descriptor.get === undefined)
  for (let from = 0; from < withValue.length; from += CHUNK) {
    const names: string[] = []
    const values: unknown[] = []
    const bound = (value: unknown): string => {
      const at = values.indexOf(value)
      if (at >= 0) return names[at]!
      values.push(value)
      return names[names.push(`v${names.length}`) - 1]!
    }
    const isLast = from + CHUNK >= withValue.length
    const comparisons = withValue.slice(from, from + CHUNK).map(({ owner, key, descriptor }) => {
      const member = typeof key === 'symbol' ? bound(key) : stringify(key)
      return `${bound(owner.object)}[${member}] === ${bound(descriptor.value)}`
    })
    if (isLast)
      for (const { object, key } of absent) comparisons.push(`${bound(object)}[${stringify(key)}] === undefined`)
    const code = `return function isIntact() { return ${comparisons.join(' && ')} }`
    checks.push((new Function(...names, code) as (...values: unknown[]) => () => boolean)(...values))
  }
  return checks
}

const nameOf = (owner: string, key: PropertyKey): string => {
  if (typeof key === 'symbol') return `${owner}[${key.description}]`
  return owner === '' ? toText(key) : `${owner}.${toText(key)}`
}

// ── replaced while plugins boot ──────────────────────────────────────────────

/** What methods are called on, by the name of their owner; made anew for each call. */
const SAMPLES: Readonly<Record<string, () => unknown>> = {
  'Array.prototype': () => ['b', 'a'],
  'String.prototype': () => 'a-b',
  'Map.prototype': () => new Map([['a', 1]]),
  'Set.prototype': () => new Set(['a']),
  'Promise.prototype': () => Promise.resolve(1),
  'RegExp.prototype': () => /a/g,
  'Date.prototype': () => new Date(0),
  'Function.prototype': () => () => 1,
  'Object.prototype': () => ({ a: 1 }),
}
/** Arguments, one list after the other. */
const ARGUMENTS: readonly (() => unknown[])[] = [
  () => ['a'],
  () => [() => 'a', 'a'],
  () => [{ a: 1 }],
  () => [[['a', 1]]],
]

function worksAsBefore({ owner, key, descriptor }: Property): boolean {
  const now = ownDescriptor(owner.object, key)
  const [before, after]: unknown[] = [descriptor.value ?? descriptor.get, now?.value ?? now?.get]
  if (!isCode(before) || !isCode(after)) return false
  const sample = SAMPLES[owner.name] ?? (() => owner.object)
  for (let n = 0; n < ARGUMENTS.length; n++) {
    const given = ARGUMENTS[n]!
    if (outcome(before, sample(), given()) !== outcome(after, sample(), given())) return false
  }
  return true
}

type Code = (...given: never[]) => unknown

const isCode = (value: unknown): value is Code => typeof value === 'function'

function outcome(code: Code, on: unknown, given: unknown[]): string {
  try {
    const value = apply(code, on, given as never[])
    if (value instanceof Promise) value.catch(() => {})
    return typeof value === 'object' ? `object ${stringify(value)}` : `${typeof value} ${toText(value)}`
  } catch {
    return 'throws'
  }
}

// ── where the other code stands ──────────────────────────────────────────────

const HELD = '__heddleReplaced'

/** Where a function was written, as a line of a stack; empty where it is JavaScript's own. */
function placeOf(name: string, code: object): string {
  const scripts: Record<string, Debugger.ScriptParsedEventDataType> = {}
  let at: Debugger.Location | undefined
  const session = new Session()
  session.connect()
  session.on('Debugger.scriptParsed', ({ params }) => {
    scripts[params.scriptId] = params
  })
  defineProperty(globalThis, HELD, { value: code, configurable: true })
  // A session with one's own thread answers before it returns.
  session.post('Debugger.enable')
  session.post('Runtime.evaluate', { expression: HELD }, (_, { result: { objectId = '' } }) => {
    session.post('Runtime.getProperties', { objectId, ownProperties: true }, (_, { internalProperties = [] }) => {
      at = internalProperties.find((each) => each.name === '[[FunctionLocation]]')?.value?.value
    })
  })
  session.disconnect()
  deleteProperty(globalThis, HELD)
  try {
    const { url, sourceMapURL } = scripts[at!.scriptId]!
    const { file, line, column } = placeInSource(url, sourceMap(sourceMapURL), at!.lineNumber, at!.columnNumber ?? 0)
    return `    at ${name} (${file}:${line}:${column})`
  } catch {
    return ''
  }
}
