import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node'
import type { Settings } from '../config/schema.ts'

/** What OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG ask for. */
export function samplerOf({ otelTracesSampler, otelTracesSamplerArg }: Settings): Sampler {
  switch (otelTracesSampler) {
    case 'always_on':
      return new AlwaysOnSampler()
    case 'always_off':
      return new AlwaysOffSampler()
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(otelTracesSamplerArg)
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() })
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() })
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(otelTracesSamplerArg) })
  }
}
