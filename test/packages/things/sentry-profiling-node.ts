import { nodeProfilingIntegration } from '@sentry/profiling-node'

export default () => () => nodeProfilingIntegration().name
