import { randomBytes, scryptSync } from 'node:crypto'
import AuthTool from '../../../../../src/tools/auth/index.ts'

const COST = { N: 1024, r: 8, p: 1 }
const VERIFY_MS = 100

/**
 * The tool as it is, with hashes that cost a hundredth of the processor time: what they are verified with is a part of them.
 * To verify takes about as long as ever, so that attempts that come at once are at work at once.
 */
export default class CheapAuth extends AuthTool {
  override readonly name = 'auth'

  override api() {
    const api = super.api()
    return {
      ...api,
      hashPassword: async (password: string) => {
        const salt = randomBytes(16)
        const key = scryptSync(password.normalize('NFC'), salt, 32, COST)
        return `scrypt$${COST.N}$${COST.r}$${COST.p}$${salt.toString('base64url')}$${key.toString('base64url')}`
      },
      verifyPassword: async (password: string, hash: string) => {
        const [isRight] = await Promise.all([
          api.verifyPassword(password, hash),
          new Promise((resolve) => setTimeout(resolve, VERIFY_MS)),
        ])
        return isRight
      },
    }
  }
}
