import { generateKeyPair, jwtVerify, SignJWT } from 'jose'

const keys = generateKeyPair('ES256')

export default () => async () => {
  const { privateKey, publicKey } = await keys
  const token = await new SignJWT({ sub: 'ada' }).setProtectedHeader({ alg: 'ES256' }).sign(privateKey)
  return (await jwtVerify(token, publicKey)).payload
}
