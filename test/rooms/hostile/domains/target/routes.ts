import type { SseStream, Tools } from '#heddle'

/** What the hostile tests aim at: the same routes in a worker plugin under `/w` and in a primary one under `/p`. */
export function addTargetRoutes(
  { http, auth, state, event_bus: bus }: Pick<Tools, 'http' | 'auth' | 'state' | 'event_bus'>,
  prefix: '/w' | '/p',
): void {
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

  // Whatever is published goes to the streams of every thread.
  const streams = new Map<SseStream, unknown>()
  http.addStream(`${prefix}/feed`, async ({ group }, stream) => {
    streams.set(stream, group)
    await state.increment('feeds')
    // It may have been cut off meanwhile.
    const leave = (): void => {
      streams.delete(stream)
      void state.increment('feeds', -1)
    }
    if (stream.signal.aborted) return leave()
    stream.signal.addEventListener('abort', leave)
  })
  bus.subscribe(
    'target.fed',
    (data) => {
      const { group, first, frames, bytes } = data as { group: string; first: number; frames: number; bytes: number }
      const text = 'x'.repeat(bytes)
      for (let n = first; n < first + frames; n++) {
        for (const [stream, of] of streams) if (of === group) stream.send({ n, text })
      }
    },
    { broadcast: true },
  )
  http.addEndpoint(`${prefix}/feed`, 'POST', async (data) => {
    await bus.publish('target.fed', data)
    return { success: true }
  })
  http.addStream(`${prefix}/burst`, ({ frames }, stream) => {
    for (let n = 0; n < Number(frames); n++) stream.send({ n })
    stream.close()
  })
}
