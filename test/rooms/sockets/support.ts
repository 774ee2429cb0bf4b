import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import type { Heddle, StartOptions } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { openWebSocket, type RawWebSocket } from '../../support/web-socket.ts'

const OWN = fileURLToPath(new URL('domains', import.meta.url))

/** A process with the plugins of this folder, for the tests of a file. */
export const shareTalk = (options: StartOptions = {}): (() => Heddle) =>
  shareService({ domains: [OWN, SYSTEM_ROUTES], ...options })

/** A client whose `open` has answered. */
export async function talk(heddle: Heddle, path = '/talk/a'): Promise<RawWebSocket> {
  const client = await openWebSocket(heddle.port, path)
  assert.equal(client.status, 101, client.head)
  await client.text(1)
  return client
}
