import type { RawAttribute, RawSpan, RawValue } from './definitions.ts'

const TRACE_ID_BYTES = 16
const SPAN_ID_BYTES = 8
const KINDS = ['SPAN_KIND_INTERNAL', 'SPAN_KIND_SERVER', 'SPAN_KIND_CLIENT', 'SPAN_KIND_PRODUCER', 'SPAN_KIND_CONSUMER']
/** trace.proto: the lower eight bits are the W3C trace flags, and the next says that the one after it means something. */
export const TRACE_FLAGS_MASK = 0xff
export const HAS_IS_REMOTE = 0x100
export const IS_REMOTE = 0x200
const SAMPLED = 1
const STATUS_CODES = ['STATUS_CODE_UNSET', 'STATUS_CODE_OK', 'STATUS_CODE_ERROR']
/** W3C Trace Context: at most 32 members, each a key and a printable value. */
const TRACE_STATE_MEMBERS = 32
const TRACE_STATE_MEMBER =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

/** What breaks the rules that the comments of trace.proto, or the specification of the span's parts, give. */
export function faultsOfSpan(span: RawSpan): string[] {
  const where = `span "${span.name}" ${span.spanId.toString('hex')}`
  const faults = [
    ...faultsOfId(`${where}: trace id`, span.traceId, TRACE_ID_BYTES),
    ...faultsOfId(`${where}: span id`, span.spanId, SPAN_ID_BYTES),
    ...(span.parentSpanId.length > 0 ? faultsOfId(`${where}: parent id`, span.parentSpanId, SPAN_ID_BYTES) : []),
    ...faultsOfTraceState(`${where}: trace state`, span.traceState),
    ...faultsOfAttributes(where, span.attributes),
  ]
  const broken = (holds: boolean, what: string) => {
    if (!holds) faults.push(`${where}: ${what}`)
  }
  const start = BigInt(span.startTimeUnixNano)
  const end = BigInt(span.endTimeUnixNano)
  broken(!span.parentSpanId.equals(span.spanId), 'is its own parent')
  broken(span.name !== '', 'no name')
  broken(KINDS.includes(String(span.kind)), `kind ${span.kind}`)
  broken(start > 0n && end > 0n, `starts at ${start}, ends at ${end}`)
  // Senders of before version 1.2 leave all flags at zero.
  broken(span.flags === 0 || (span.flags & SAMPLED) !== 0, 'exported though it is not sampled')
  broken(end >= start, `ends ${start - end} ns before it starts`)
  if (span.status !== null) {
    const { code, message } = span.status
    broken(STATUS_CODES.includes(String(code)), `status ${code}`)
    broken(message === '' || code === 'STATUS_CODE_ERROR', `${code} with the message "${message}"`)
  }
  for (const event of span.events) {
    broken(event.name !== '', 'an event without a name')
    broken(event.timeUnixNano !== '0', `event "${event.name}" has no time`)
    faults.push(...faultsOfAttributes(`${where}, event "${event.name}"`, event.attributes))
  }
  for (const link of span.links) {
    faults.push(...faultsOfId(`${where}: linked trace id`, link.traceId, TRACE_ID_BYTES))
    faults.push(...faultsOfId(`${where}: linked span id`, link.spanId, SPAN_ID_BYTES))
    faults.push(...faultsOfTraceState(`${where}: linked trace state`, link.traceState))
    faults.push(...faultsOfAttributes(`${where}, link`, link.attributes))
  }
  return faults
}

/** Keys are unique and not empty, arrays of one type. */
export function faultsOfAttributes(where: string, attributes: readonly RawAttribute[]): string[] {
  const keys = attributes.map(({ key }) => key)
  const twice = keys.filter((key, index) => keys.indexOf(key) !== index)
  const mixed = attributes.filter(({ value }) => value?.value === 'arrayValue' && isMixed(value.arrayValue.values))
  return [
    ...(keys.includes('') ? [`${where}: an attribute without a key`] : []),
    ...twice.map((key) => `${where}: attribute ${key} twice`),
    ...mixed.map(({ key }) => `${where}: attribute ${key} is an array of several types`),
  ]
}

function isMixed(values: readonly RawValue[]): boolean {
  return new Set(values.map(({ value }) => value)).size > 1
}

function faultsOfId(what: string, id: Buffer, bytes: number): string[] {
  if (id.length !== bytes) return [`${what} of ${id.length} bytes, not ${bytes}`]
  return id.every((byte) => byte === 0) ? [`${what} is all zero`] : []
}

function faultsOfTraceState(what: string, traceState: string): string[] {
  if (traceState === '') return []
  const members = traceState.split(',').map((member) => member.trim())
  const bad = members.filter((member) => member !== '' && !TRACE_STATE_MEMBER.test(member))
  return [
    ...(members.length > TRACE_STATE_MEMBERS ? [`${what} of ${members.length} members`] : []),
    ...bad.map((member) => `${what} has "${member}"`),
  ]
}
