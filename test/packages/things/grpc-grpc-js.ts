import { Client, credentials } from '@grpc/grpc-js'

export default (get: (name: string) => string) => {
  const client = new Client(get('TRIAL_GRPC'), credentials.createInsecure())
  const same = (bytes: Buffer) => bytes
  return () =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest('/Looms/Echo', same, same, Buffer.from('woven'), (error, bytes) =>
        error ? reject(error) : resolve(String(bytes)),
      )
    })
}
