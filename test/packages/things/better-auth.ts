import { randomUUID } from 'node:crypto'
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import type { Mount } from './plugins/use-package.ts'

export default (get: (name: string) => string, mount: Mount) => {
  // A browser says where it is.
  const origin = `http://127.0.0.1:${get('HTTP_PORT')}`
  const auth = betterAuth({
    baseURL: origin,
    basePath: '/mounted',
    secret: 'a secret of at least thirty-two characters',
    database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
    emailAndPassword: { enabled: true },
    rateLimit: { enabled: false },
  })
  const signUp = mount(auth.handler, '/sign-up/email', () => ({
    method: 'POST',
    headers: { origin, 'content-type': 'application/json' },
    body: JSON.stringify({ email: `${randomUUID()}@example.com`, password: 'correct horse', name: 'Ada' }),
  }))
  return async () => {
    const response = await signUp()
    if (!response.ok) throw new Error(await response.text())
    return response.status
  }
}
