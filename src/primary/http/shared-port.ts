import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { addressFault } from './address.ts'
import { listenFault } from './listen-fault.ts'

/**
 * For the first of several processes, before anything starts: can they share the port, and does nobody else listen on it? A port that is shared
 * tells nobody that a stranger shares it, too.
 * @throws HTTP_LISTEN
 */
export async function requireSharablePort(
  settings: Pick<Settings, 'httpHost' | 'httpPort' | 'httpReusePort'>,
): Promise<void> {
  const { httpHost, httpPort, httpReusePort } = settings
  // Another supervisor shares it on purpose.
  if (httpReusePort || (await addressFault(httpHost, httpPort)) === undefined) return
  const fault = await listenFault(httpHost, httpPort, 'HTTP')
  throw new HeddleError('HTTP_LISTEN', `Cannot listen on ${httpHost}:${httpPort}: ${fault}`)
}
