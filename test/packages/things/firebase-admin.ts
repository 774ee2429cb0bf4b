import { generateKeyPairSync } from 'node:crypto'
import { cert, initializeApp } from 'firebase-admin/app'
import { getAuth } from 'firebase-admin/auth'

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
})
const credential = cert({ projectId: 'looms', clientEmail: 'a@looms.example', privateKey })
const app = initializeApp({ credential })

export default () => async () => (await getAuth(app).createCustomToken('ada')).split('.').length
