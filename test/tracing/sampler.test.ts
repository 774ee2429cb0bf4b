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
import { randomHex } from '../../src/core/causality/ids.ts'
import { TraceSampler } from '../../src/tracing/spans/sampler.ts'
import { remoteContext } from '../../src/tracing/spans/scope.ts'

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
