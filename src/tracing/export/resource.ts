import { hostname } from 'node:os'
import { type Attributes, diag } from '@opentelemetry/api'
import { parseKeyPairsIntoRecord } from '@opentelemetry/core'
import type { Settings } from '../../core/config/schema.ts'

/** OTEL_SERVICE_NAME when it is unset. */
const UNNAMED = 'service'

/** What is told of a thread's spans as a whole. What OTEL_RESOURCE_ATTRIBUTES says gives way to the rest but for its own names. */
export function resourceAttributes(settings: Settings, thread: 'primary' | number): Attributes {
  const { otelServiceName, otelResourceAttributes, replicaId } = settings
  const given = parsed(otelResourceAttributes)
  return {
    'host.name': hostname(),
    ...given,
    'service.name': otelServiceName === UNNAMED ? (given['service.name'] ?? UNNAMED) : otelServiceName,
    'service.instance.id': replicaId,
    'process.pid': process.pid,
    'process.runtime.name': 'nodejs',
    'process.runtime.version': process.versions.node,
    'heddle.replica': replicaId,
    'heddle.thread': thread === 'primary' ? 'primary' : `lane ${thread}`,
    ...(thread === 'primary' ? {} : { 'heddle.lane': thread }),
  }
}

function parsed(pairs: string | undefined): Attributes {
  try {
    return parseKeyPairsIntoRecord(pairs)
  } catch (error) {
    diag.warn(String(error))
    return {}
  }
}
