/** Holds that the receiver of the tests tells what breaks the rules of the protocol. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXPORT } from '../../support/otlp/definitions.ts'
import { decodeRequest } from '../../support/otlp/span.ts'

const GOOD = {
  traceId: Buffer.alloc(16, 1),
  spanId: Buffer.alloc(8, 2),
  kind: 'SPAN_KIND_INTERNAL',
  startTimeUnixNano: '1000',
  endTimeUnixNano: '2000',
}

/** Of one span, which says what differs from a good one. */
function faultsOf(span: object): string[] {
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }
  const request = { resourceSpans: [{ resource, scopeSpans: [{ spans: [{ ...GOOD, ...span }] }] }] }
  const message = EXPORT.requestSerialize(request as never)
  const { faults } = decodeRequest(EXPORT.requestDeserialize(message))
  return faults.map((fault) => fault.replace(/^span "s" [0-9a-f]*:? ?/, '')).sort()
}

test('what breaks the rules of the protocol is told, and what is good is not', () => {
  const key = { key: 'twice', value: { stringValue: 'a' } }
  const cases: [span: object, told: string[]][] = [
    [{}, []],
    [
      { traceId: Buffer.alloc(16), spanId: Buffer.alloc(7, 1), parentSpanId: Buffer.alloc(8) },
      ['parent id is all zero', 'span id of 7 bytes, not 8', 'trace id is all zero'],
    ],
    [{ parentSpanId: GOOD.spanId }, ['is its own parent']],
    [{ endTimeUnixNano: '999' }, ['ends 1 ns before it starts']],
    [
      { attributes: [key, key, { key: '', value: { boolValue: true } }] },
      ['an attribute without a key', 'attribute twice twice'],
    ],
    [{ kind: 9 }, ['kind 9']],
    [{ status: { code: 'STATUS_CODE_OK', message: 'fine' } }, ['STATUS_CODE_OK with the message "fine"']],
    [{ traceState: 'UPPER=1', flags: 0x100 }, ['exported though it is not sampled', 'trace state has "UPPER=1"']],
    [
      { events: [{ name: '', timeUnixNano: '0', attributes: [key, key] }] },
      [', event "": attribute twice twice', 'an event without a name', 'event "" has no time'],
    ],
    [{ name: '' }, ['span "" 0202020202020202: no name']],
  ]
  for (const [span, told] of cases) assert.deepEqual(faultsOf({ name: 's', ...span }), told)
  const { faults } = decodeRequest({ resourceSpans: [{ resource: null, scopeSpans: [], schemaUrl: '' }] })
  assert.deepEqual(faults, ['resource: no service.name'])
})
