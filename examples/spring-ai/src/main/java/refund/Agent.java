package refund;

import java.util.*;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.model.*;
import org.springframework.ai.chat.prompt.*;
import org.springframework.ai.model.tool.ToolCallingChatOptions;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/** A refund agent in Spring AI. Its model is a script: use your own in its place. */
@SpringBootApplication
public class Agent {
    static final String LOOK_UP = "lookup_order {\"order_id\": \"A-1042\"}";
    static final String CHECK = "check_policy {\"order_id\": \"A-1042\"}";
    static final String REFUND = "issue_refund {\"order_id\": \"A-1042\", \"amount\": %s}";
    static final List<String> GOOD = List.of(LOOK_UP, CHECK, REFUND.formatted(40), "Refunded.");
    static final List<String> BAD = List.of(LOOK_UP, REFUND.formatted(400), "Refunded.");

    /** A model that gives these answers, one after the other: calls, and a text at the end. */
    record Scripted(Iterator<String> answers) implements ChatModel {
        public ChatOptions getOptions() { return ToolCallingChatOptions.builder().build(); }

        public ChatResponse call(Prompt prompt) {
            String[] words = answers.next().split(" ", 2);
            boolean asks = words.length == 2;
            AssistantMessage.Builder<?> answer = AssistantMessage.builder().content(asks ? "" : words[0]);
            if (asks) answer.toolCalls(List.of(new AssistantMessage.ToolCall("call", "function", words[0], words[1])));
            return new ChatResponse(List.of(new Generation(answer.build())));
        }
    }

    static class Tools {
        @Tool Map<String, Object> lookup_order(String order_id) { return Map.of("order_id", order_id, "amount", 40); }
        @Tool Map<String, Object> check_policy(String order_id) { return Map.of("order_id", order_id, "refundable", true); }
        @Tool String issue_refund(String order_id, int amount) { return "refunded " + amount; }
    }

    @Bean
    ChatModel model() {
        List<String> answers = new ArrayList<>(GOOD);
        answers.addAll(BAD);
        return new Scripted(answers.iterator());
    }

    @Bean
    CommandLineRunner runs(ChatClient.Builder builder) {
        ChatClient agent = builder.defaultTools(new Tools()).build();
        return arguments -> {
            for (int run = 0; run < 2; run++)
                System.out.println(agent.prompt("My lamp, order A-1042, arrived broken.").call().content());
        };
    }

    public static void main(String[] arguments) { SpringApplication.run(Agent.class, arguments); }
}
