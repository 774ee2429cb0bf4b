// The events that the sources publish and subscribe to, and their rule: each has one contract, literal payloads fit it, and what has a subscriber is published somewhere.
import type { JsonSchema } from '../../contracts/registry.ts'
import { shown } from '../../core/errors/places.ts'
import { isPlainObject } from '../../core/schemas/standard-schema.ts'
import { compareText, displayPath, errorAt, type Finding, warningAt } from './finding.ts'
import { type Contract, type Module, type Project, pluginsByFile } from './project.ts'
import { HOLE, joined, type Literal } from './texts.ts'

/** A call of `publish`, `request` or `subscribe`, once for each name that the event may have. */
interface EventCall {
  /** With a hole for each part that only the running program knows. */
  event: string
  kind: 'emit' | 'subscribe'
  module: Module
  line: number
  payload: Literal | undefined
}

const KINDS: Readonly<Record<string, EventCall['kind']>> = { publish: 'emit', request: 'emit', subscribe: 'subscribe' }

function eventCalls({ modules }: Project): EventCall[] {
  return modules.flatMap((module) =>
    module.toolCalls.flatMap(({ tool, method, line, args: [name, payload] }) => {
      const kind = tool === 'event_bus' || tool === 'tx' ? KINDS[method] : undefined
      if (kind === undefined) return []
      // With several names and several payloads, it is unknown which payload belongs to which name.
      const isTold = kind === 'emit' && !(name?.type === 'choice' && payload?.type === 'choice')
      return namesOf(name).map((event) => ({ event, kind, module, line, payload: isTold ? payload : undefined }))
    }),
  )
}

function namesOf(name: Literal | undefined): string[] {
  if (name?.type === 'choice') return name.options.flatMap(namesOf)
  const event = name?.type === 'string' ? joined(name.parts) : HOLE
  // An empty name is the initial value of a variable.
  return event === '' ? [] : [event]
}

/** True when the source shows the whole name. */
function isNamed({ event }: EventCall): boolean {
  return !event.includes(HOLE)
}

/** True when the event may be the one that is called so. */
function mayBe({ event }: EventCall, name: string): boolean {
  const pieces = event.split(HOLE).map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${pieces.join('.*')}$`, 's').test(name)
}

/** True when no character of the name is known. */
function isBlank({ event }: EventCall): boolean {
  return event.replaceAll(HOLE, '') === ''
}

/** Events that the runtime itself publishes. */
export function isBuiltIn(event: string): boolean {
  return event === 'event.delivery.failed' || event.startsWith('runtime.')
}

/** An event that the sources publish or subscribe to. */
export interface ScannedEvent {
  event: string
  /** Names of plugins, `<domain>.<ClassName>`, sorted. */
  emitters: string[]
  /** Names of plugins, sorted. */
  subscribers: string[]
}

/**
 * Finds the events of all plugins in their sources, whether they ever fired or not. Leaves out names that are only known at run time.
 * The events of a file that plugins import count for each of these plugins.
 * @internal
 */
export function eventsOf(project: Project): ScannedEvent[] {
  const pluginsOf = pluginsByFile(project)
  const calls = eventCalls(project).filter((call) => isNamed(call) && pluginsOf.has(call.module.file))
  const parties = (event: string, kind: EventCall['kind']): string[] => {
    const own = calls.filter((call) => call.event === event && call.kind === kind)
    return [...new Set(own.flatMap(({ module }) => [...pluginsOf.get(module.file)!]))].sort(compareText)
  }
  const names = [...new Set(calls.map(({ event }) => event))].sort(compareText)
  return names.map((event) => ({
    event,
    emitters: parties(event, 'emit'),
    subscribers: parties(event, 'subscribe'),
  }))
}

const RULE = 'event-contract'

export function eventContract(project: Project): Finding[] {
  const { byEvent: contracts, faults } = project.contracts
  const findings = faults.map(({ file, message }) => {
    const event = /^The event '(.*)' has two contracts/.exec(message)?.[1]
    if (event === undefined) {
      const reason = message.replace(`${shown(file)}: `, '')
      return warningAt(RULE, file, 1, `the contracts cannot be loaded: ${reason}`)
    }
    const first = contractPlace(project, event)!
    const place = `${displayPath(first.file)}:${first.line}`
    const line = project.modules.find((module) => module.file === file)?.keyLines.get(event) ?? 1
    return errorAt(RULE, file, line, `the event '${event}' has a contract already, in ${place}`)
  })
  const allReadable = findings.every(({ severity }) => severity === 'error')
  const calls = eventCalls(project)
  const emits = calls.filter(({ kind }) => kind === 'emit')
  const published = new Set(emits.map(({ event }) => event))
  const open = emits.filter((call) => !isNamed(call))
  for (const call of calls.filter(isNamed)) {
    const { event, module, line } = call
    if (call.kind === 'emit') {
      const contract = contracts.get(event)
      if (contract) findings.push(...payloadFindings(call, contract))
      else if (allReadable && !(isBuiltIn(event) && module.domain === 'system')) {
        const wanted = `declare it in domains/${module.domain}/events.ts`
        findings.push(errorAt(RULE, module.file, line, `the event '${event}' has no contract: ${wanted}`))
      }
    } else if (!published.has(event) && !isBuiltIn(event)) {
      const message = objection(event, open)
      if (message !== undefined) findings.push(warningAt(RULE, module.file, line, message))
    }
  }
  return findings
}

/** The fault of a subscription to an event that no `publish` in the sources names. */
function objection(event: string, open: readonly EventCall[]): string | undefined {
  const plain = `nobody publishes the event '${event}' subscribed to here`
  const possible = open.filter((emit) => mayBe(emit, event))
  if (possible.some((emit) => !isBlank(emit))) return undefined
  const [blank] = possible
  if (!blank) return plain
  return `${plain}, unless ${displayPath(blank.module.file)}:${blank.line} does, where the name is only known at run time`
}

/** Where an event has its contract: a file that cannot be loaded counts by what stands in it. The first line when the file takes it from another. */
export function contractPlace({ contracts, modules }: Project, event: string) {
  const loaded = contracts.byEvent.get(event)?.file
  const found = modules.find(({ file, keyLines }) => (loaded ? file === loaded : keyLines.has(event)))
  return found && { file: found.file, domain: found.domain, line: found.keyLines.get(event) ?? 1 }
}

function payloadFindings({ event, module, payload }: EventCall, contract: Contract): Finding[] {
  if (payload?.type !== 'object') return []
  return misfits(payload, contract.schema).map(({ line, message }) =>
    errorAt(RULE, module.file, line, `the payload of '${event}' ${message}`),
  )
}

/** A place where a payload literal does not fit its schema. */
interface Misfit {
  line: number
  message: string
}

/** Compares keys and primitive types alone. What the source does not say for certain fits. @param path place within the payload */
function misfits(payload: Literal, schema: JsonSchema, path = ''): Misfit[] {
  if (payload.type === 'choice') return payload.options.flatMap((option) => misfits(option, schema, path))
  const { line } = payload
  const place = path === '' ? 'the payload' : `'${path}'`
  const types = typesOf(schema)
  if (payload.type === 'unknown' || types === undefined) return []
  if (payload.type === 'undefined') return [{ line, message: `lacks the required key ${place}` }]
  if (!types.includes(payload.type)) {
    const wanted = types.length > 1 ? types.filter((type) => type !== 'null') : types
    return [{ line, message: `has ${article(payload.type)} for ${place}, not ${wanted.map(article).join(' or ')}` }]
  }
  const [shape, ...others] = variants(schema).filter((each) => typesOf(each)?.includes('object'))
  if (payload.type !== 'object' || !isPlainObject(shape?.properties) || others.length > 0) return []
  const { properties: fields, required = [], additionalProperties = false } = shape
  const keyAt = (key: string) => (path === '' ? key : `${path}.${key}`)
  const found: Misfit[] = []
  const given = new Map(payload.entries.map(({ key, value }) => [key, value]))
  for (const [key, field] of Object.entries(fields)) {
    const value = given.get(key)
    const isRequired = (required as string[]).includes(key)
    if (value?.type === 'undefined' && !isRequired) continue
    if (value) found.push(...misfits(value, field as JsonSchema, keyAt(key)))
    else if (isRequired && !payload.open) found.push({ line, message: `lacks the required key '${keyAt(key)}'` })
  }
  for (const [key, value] of additionalProperties === false ? given : []) {
    if (!Object.hasOwn(fields, key)) found.push({ line: value.line, message: `has the unknown key '${keyAt(key)}'` })
  }
  return found
}

/** The types of literals that the schema may take; undefined when that cannot be told. */
function typesOf(schema: JsonSchema): string[] | undefined {
  const { type, const: only, enum: values } = schema
  if ('$ref' in schema || 'allOf' in schema || 'not' in schema) return undefined
  const all = variants(schema)
  if (all[0] !== schema) {
    const each = all.map(typesOf)
    return each.includes(undefined) ? undefined : [...new Set(each.flatMap((types) => types!))]
  }
  const listed = 'const' in schema ? [only] : (values as unknown[] | undefined)
  if (listed) return [...new Set(listed.map((value) => (value === null ? 'null' : typeof value)))]
  return type === undefined
    ? undefined
    : [type as string | string[]].flat().map((each) => (each === 'integer' ? 'number' : each))
}

function variants(schema: JsonSchema): JsonSchema[] {
  return ((schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined) ?? [schema]
}

function article(type: string): string {
  if (type === 'null') return 'null'
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}
