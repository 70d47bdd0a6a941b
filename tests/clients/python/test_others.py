"""The official Anthropic client through the gateway's `/v1/messages`, and LiteLLM as a client of both interfaces."""

import asyncio
import unittest

import anthropic
import litellm

from test_openai import ASK, SCHEMA, TEXT, TOOL
from world import KEY, PATIENCE, end, world

litellm.suppress_debug_info = True
TOOLS = [{"name": "weather", "input_schema": SCHEMA}]


def tearDownModule():
    end()


class Anthropic(unittest.TestCase):
    tearDownClass = staticmethod(end)

    def setUp(self):
        self.client = self.make()

    def make(self, **more):
        settings = {"base_url": world().root, "api_key": KEY, "timeout": PATIENCE, "max_retries": 0} | more
        client = anthropic.Anthropic(**settings)
        self.addCleanup(client.close)
        return client

    def ask(self, model="claude", client=None, **more):
        return (client or self.client).messages.create(model=model, max_tokens=100, messages=ASK, **more)

    def fails(self, kind, *arguments, **more):
        with self.assertRaises(kind) as caught:
            self.ask(*arguments, **more)
        self.assertIs(type(caught.exception), kind)
        return caught.exception

    def test_message(self):
        done = self.ask()
        self.assertEqual((done.content[0].text, done.stop_reason, done.usage.output_tokens), (TEXT, "end_turn", 12))

    def test_streamed(self):
        with self.client.messages.stream(model="claude", max_tokens=100, messages=ASK) as stream:
            self.assertEqual("".join(stream.text_stream), TEXT)
            self.assertEqual(stream.get_final_message().usage.output_tokens, 12)

    def test_tools(self):
        call = self.ask(tools=TOOLS)
        self.assertEqual((call.stop_reason, call.content[0].input), ("tool_use", {"city": "w0", "days": 1}))
        with self.client.messages.stream(model="claude", max_tokens=100, messages=ASK, tools=TOOLS) as stream:
            self.assertEqual(stream.get_final_message().content[0].input, {"city": "w0", "days": 1})
        result = {"type": "tool_result", "tool_use_id": call.content[0].id, "content": "sunny"}
        answered = [*ASK, {"role": "assistant", "content": call.content}, {"role": "user", "content": [result]}]
        done = self.client.messages.create(model="claude", max_tokens=100, messages=answered, tools=TOOLS)
        self.assertEqual(done.content[0].text, TEXT)

    def test_async(self):
        async def ask():
            async with anthropic.AsyncAnthropic(base_url=world().root, api_key=KEY, timeout=PATIENCE) as client:
                asked = (client.messages.create(model="claude", max_tokens=100, messages=ASK) for _ in range(20))
                return await asyncio.gather(*asked)

        for done in asyncio.run(ask()):
            self.assertEqual(done.content[0].text, TEXT)

    def test_refusals_speak_its_language(self):
        error = self.fails(anthropic.AuthenticationError, client=self.make(api_key="sk-other"))
        self.assertEqual((error.type, error.error_code), ("authentication_error", "invalid_api_key"))
        error = self.fails(anthropic.NotFoundError, "unheard-of")
        self.assertEqual((error.type, error.error_code), ("not_found_error", "model_not_found"))
        self.assertTrue(error.request_id)
        error = self.fails(anthropic.GatewayTimeoutError, "late")
        self.assertEqual((error.type, error.error_code), ("timeout_error", "timeout_total"))
        with self.assertRaises(anthropic.RateLimitError) as caught:
            for _ in range(2):
                self.ask("one")
        error = caught.exception
        self.assertEqual((error.type, error.error_code), ("rate_limit_error", "rate_limited"))
        self.assertIn(int(error.response.headers["retry-after"]), range(1, 61))
        with self.assertRaises(anthropic.PaymentRequiredError) as caught:
            for _ in range(20):
                self.ask("dear")
        self.assertEqual((caught.exception.type, caught.exception.error_code), ("billing_error", "budget_exhausted"))
        held = self.ask("narrow", stream=True, extra_headers={"x-fault": "stall:1"})
        self.addCleanup(held.close)
        error = self.fails(anthropic.ServiceUnavailableError, "narrow")
        self.assertEqual((error.type, error.error_code), ("api_error", "full"))

    def test_errors_of_the_upstream_come_as_they_are(self):
        error = self.fails(anthropic.OverloadedError, extra_headers={"x-fault": "529"})
        self.assertEqual(error.type, "overloaded_error")
        with self.assertRaises(anthropic.APIStatusError) as caught:
            for _ in self.ask(stream=True, extra_headers={"x-fault": "error-event:3"}):
                pass
        self.assertEqual(caught.exception.type, "overloaded_error")


class LiteLlm(unittest.TestCase):
    def ask(self, model="openai/chat", **more):
        base = world().v1 if model.startswith("openai/") else world().root
        settings = {"api_base": base, "api_key": KEY, "timeout": PATIENCE, "num_retries": 0, "max_retries": 0}
        return litellm.completion(model=model, messages=ASK, **(settings | more))

    def test_chat_of_either_interface(self):
        for model in ("openai/chat", "anthropic/claude"):
            with self.subTest(model):
                done = self.ask(model)
                self.assertEqual(done.choices[0].message.content, TEXT)
                self.assertEqual(done.usage.completion_tokens, 12)
                said = "".join(chunk.choices[0].delta.content or "" for chunk in self.ask(model, stream=True))
                self.assertEqual(said, TEXT)
                call = self.ask(model, tools=[TOOL]).choices[0].message.tool_calls[0]
                self.assertEqual(call.function.name, "weather")

    def test_async_and_embeddings(self):
        async def ask():
            more = {"api_base": world().v1, "api_key": KEY, "timeout": PATIENCE}
            done = await litellm.acompletion(model="openai/chat", messages=ASK, **more)
            stream = await litellm.acompletion(model="openai/chat", messages=ASK, stream=True, **more)
            said = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
            self.assertEqual(said, TEXT)
            vectors = await litellm.aembedding(model="openai/chat", input=["one", "two"], **more)
            return done.choices[0].message.content, len(vectors.data)

        self.assertEqual(asyncio.run(ask()), (TEXT, 2))

    def test_refusals_keep_their_kind(self):
        with self.assertRaises(litellm.RateLimitError) as caught:
            for _ in range(2):
                self.ask("openai/one")
        self.assertEqual(caught.exception.status_code, 429)
        with self.assertRaises(litellm.NotFoundError):
            self.ask("openai/unheard-of")
        with self.assertRaises(litellm.AuthenticationError):
            self.ask(api_key="sk-other")
        held = self.ask("openai/narrow", stream=True, extra_headers={"x-fault": "stall:1"})
        next(held)
        with self.assertRaises(litellm.ServiceUnavailableError):
            self.ask("openai/narrow")
        with self.assertRaises(litellm.APIError) as caught:
            for _ in range(20):
                self.ask("openai/dear")
        self.assertEqual(caught.exception.status_code, 402)


if __name__ == "__main__":
    unittest.main()
