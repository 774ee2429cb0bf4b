import type { Tools } from '#heddle'

/** What the hostile tests aim at: the same routes in a worker plugin under `/w` and in a primary one under `/p`. */
export function addTargetRoutes({ http, auth }: Pick<Tools, 'http' | 'auth'>, prefix: '/w' | '/p'): void {
  http.addEndpoint(`${prefix}/token/:sub`, 'GET', async ({ sub }) => ({
    success: true,
    data: await auth.createToken({ sub }),
  }))
  http.addEndpoint(`${prefix}/me`, 'GET', ({ _auth }) => ({ success: true, data: _auth }), {
    authValidator: auth.validateToken,
  })
  http.addStream(`${prefix}/say-back`, (data, stream) => {
    stream.send(data)
    stream.close()
  })

  // Stays open.
  http.addStream(`${prefix}/feed`, () => {})
  http.addStream(`${prefix}/burst`, ({ frames }, stream) => {
    for (let n = 0; n < Number(frames); n++) stream.send({ n })
    stream.close()
  })
}
