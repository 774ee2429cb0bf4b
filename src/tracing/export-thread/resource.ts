import { hostname } from 'node:os'
import { type Attributes, diag } from '@opentelemetry/api'
import { parseKeyPairsIntoRecord } from '@opentelemetry/core'
import type { Settings } from '../../core/config/schema.ts'

/** The value of OTEL_SERVICE_NAME when it is unset. */
const UNNAMED = 'service'

/** The attributes that all spans of a thread have in common. They override those of OTEL_RESOURCE_ATTRIBUTES, except for `host.name` and an unset service name. */
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
