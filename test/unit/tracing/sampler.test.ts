import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SpanKind } from '@opentelemetry/api'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node'
import { randomHex } from '../../../src/core/causality/ids.ts'
import { TraceSampler } from '../../../src/tracing/sampler.ts'
import { remoteContext } from '../../../src/tracing/scope.ts'

describe('the sampler', () => {
  const ROOTS: Record<string, (ratio: number) => Sampler> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
  }
  for (const [name, root] of Object.entries(ROOTS)) {
    for (const prefix of ['', 'parentbased_'] as const) {
      test(`${prefix}${name} decides as the SDK's does`, () => {
        for (const ratio of [0, 0.01, 0.5, 0.99, 1]) {
          const theirs = prefix === '' ? root(ratio) : new ParentBasedSampler({ root: root(ratio) })
          const ours = new TraceSampler({
            otelTracesSampler: `${prefix}${name}` as 'always_on',
            otelTracesSamplerArg: ratio,
          })
          for (let n = 0; n < 500; n++) {
            const traceId = randomHex(16)
            for (const parent of ['', `00-${traceId}-b7ad6b7169203331-01`, `00-${traceId}-b7ad6b7169203331-02`]) {
              const { decision } = theirs.shouldSample(remoteContext(parent), traceId, 'x', SpanKind.SERVER, {}, [])
              assert.equal(
                ours.samples(parent, traceId),
                decision === SamplingDecision.RECORD_AND_SAMPLED,
                `${ratio} of ${traceId} under "${parent}"`,
              )
            }
          }
        }
      })
    }
  }
})

describe('the trace of a request that begins one', () => {
  for (const ratio of [0, 0.01, 0.5, 0.99, 1]) {
    test(`is sampled in ${ratio} of all cases, and its id says so to every process with this ratio`, () => {
      const settings = { otelTracesSampler: 'parentbased_traceidratio', otelTracesSamplerArg: ratio } as const
      const sampler = new TraceSampler(settings)
      const theirs = new TraceIdRatioBasedSampler(ratio)
      const isSampled = (traceId: string): boolean =>
        theirs.shouldSample(remoteContext(''), traceId).decision === SamplingDecision.RECORD_AND_SAMPLED
      const runs = 20_000
      const ids = Array.from({ length: runs }, () => sampler.begin())
      const begun = ids.filter((traceId) => traceId !== '')
      // Five standard deviations: one run in a million is further away.
      assert.ok(Math.abs(begun.length - runs * ratio) <= 5 * Math.sqrt(runs * ratio * (1 - ratio)), `${begun.length}`)
      assert.ok(begun.every((traceId) => /^[0-9a-f]{32}$/.test(traceId) && isSampled(traceId)))
      assert.equal(new Set(begun).size, begun.length)
      if (ratio === 1) return
      const others = Array.from({ length: 2000 }, () => sampler.unsampled())
      assert.ok(others.every((traceId) => /^[0-9a-f]{32}$/.test(traceId) && !isSampled(traceId)))
    })
  }
})
