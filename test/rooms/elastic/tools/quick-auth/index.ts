import { createHash } from 'node:crypto'
import AuthTool from '../../../../../src/tools/auth/index.ts'

const hash = (password: string): string => createHash('sha256').update(password).digest('base64url')

/** The tool as it is, with passwords that cost nothing: a thousand users would take minutes otherwise. */
export default class QuickAuth extends AuthTool {
  override readonly name = 'auth'

  override api() {
    return {
      ...super.api(),
      hashPassword: async (password: string) => hash(password),
      verifyPassword: async (password: string, stored: string) => hash(password) === stored,
    }
  }
}
