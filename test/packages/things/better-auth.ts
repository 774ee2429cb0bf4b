import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'

export default () => {
  const auth = betterAuth({
    baseURL: 'http://a.example',
    secret: 'a secret of at least thirty-two characters',
    database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
    emailAndPassword: { enabled: true },
    rateLimit: { enabled: false },
  })
  let n = 0
  return async () => {
    const user = { email: `ada${n++}@example.com`, password: 'correct horse', name: 'Ada' }
    const body = JSON.stringify(user)
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://a.example/api/auth/sign-up/email', { method: 'POST', headers, body })
    const response = await auth.handler(request)
    if (!response.ok) throw new Error(await response.text())
    return response.status
  }
}
