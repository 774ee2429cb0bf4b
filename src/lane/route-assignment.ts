import { mountEndpoints } from '../runtime/endpoint/files/static-files.ts'
import type { RequestServer } from '../runtime/endpoint/request-server.ts'
import type { SharedMount } from '../transport/messages.ts'
import type { LaneRoute } from './tool-host.ts'

/**
 * Lets the lane serve its routes under the numbers that the primary gave them.
 * @param numbers in the order of the routes; -1 for a route that was refused
 * @param mounts folders that plugins of the primary serve
 */
export function assignRoutes(
  server: RequestServer,
  routes: readonly LaneRoute[],
  numbers: readonly number[],
  mounts: readonly SharedMount[],
): void {
  routes.forEach(({ endpoint, stream, socket }, n) => {
    const number = numbers[n]!
    if (number < 0) return
    if (endpoint !== null) server.addEndpoint(number, endpoint)
    else if (stream !== null) server.addStream(number, stream)
    else if (socket !== null) server.addWebSocket(number, socket)
  })
  for (const { plugin, prefix, directory, numbers } of mounts) {
    const owner = { name: plugin, instance: undefined }
    mountEndpoints({ owner, prefix, directory }).forEach((endpoint, n) => {
      server.addEndpoint(numbers[n]!, endpoint)
    })
  }
}
