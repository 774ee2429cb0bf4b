import type { SseStream, Tools } from '#heddle'

/** What the hostile tests aim at: the same routes in a worker plugin under `/w` and in a primary one under `/p`. */
export function addTargetRoutes({ http, auth }: Pick<Tools, 'http' | 'auth'>, prefix: '/w' | '/p'): void {
  http.addEndpoint(`${prefix}/token/:sub`, 'GET', async ({ sub }) => ({
    success: true,
    data: await auth.createToken({ sub }),
  }))
  http.addEndpoint(`${prefix}/me`, 'GET', ({ _auth }) => ({ success: true, data: _auth }), {
    authValidator: auth.validateToken,
  })
  // The strictest of JSON bodies: what the handler got is said back as it is.
  http.addEndpoint(`${prefix}/mirror`, 'POST', (data, context) => ({
    success: true,
    data: { fields: data, body: context.body === undefined ? null : context.body },
  }))

  http.addStream(`${prefix}/say-back`, (data, stream) => {
    stream.send(data)
    stream.close()
  })

  const listeners = new Set<SseStream>()
  http.addStream(`${prefix}/feed`, (_data, stream) => {
    listeners.add(stream)
    stream.signal.addEventListener('abort', () => listeners.delete(stream))
  })
  http.addEndpoint(`${prefix}/feed`, 'POST', ({ frames, bytes, first }: Record<string, number>) => {
    const text = 'x'.repeat(bytes!)
    for (let n = 0; n < frames!; n++) for (const stream of listeners) stream.send({ n: first! + n, text })
    return { success: true, data: listeners.size }
  })
}
