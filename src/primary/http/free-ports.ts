import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { addressFault } from './address.ts'
import { listenFault } from './listen-fault.ts'

/**
 * Before anything starts, and so before a migration is applied: does nobody else listen on the ports? A port that is shared tells nobody that a
 * stranger shares it, too.
 * @param joins other processes of the same guardian listen on HTTP_PORT already
 * @throws HTTP_LISTEN
 */
export async function requireFreePorts(
  settings: Pick<Settings, 'httpHost' | 'httpPort' | 'httpReusePort' | 'systemHost' | 'systemPort'>,
  joins: boolean,
): Promise<void> {
  const { httpHost, httpPort, httpReusePort, systemHost, systemPort = 0 } = settings
  // With HTTP_REUSE_PORT another supervisor shares it on purpose.
  if (!joins && !httpReusePort) await requireFree(httpHost, httpPort, 'HTTP')
  await requireFree(systemHost, systemPort, 'SYSTEM')
}

async function requireFree(host: string, port: number, name: 'HTTP' | 'SYSTEM'): Promise<void> {
  if (port === 0 || (await addressFault(host, port)) === undefined) return
  throw new HeddleError('HTTP_LISTEN', `Cannot listen on ${host}:${port}: ${await listenFault(host, port, name)}`)
}
